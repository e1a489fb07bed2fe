import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { Canal, Cni } from "../../../components/add-ons/cni";
import { manifests, versions } from "../../../components/versions";
import { dependenciesOf, Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";
import { itWith } from "../../support/unless";
import { cniPlugins } from "../../../tools/mirror/mirrored-programs";
import { testFolder } from "../../support/test-folder";

describe("Canal", () => {
  async function build(texts: ReadonlyMap<string, string>, settings = validSettings) {
    const recorder = await Recorder.start();
    new Canal("canal", { settings, manifests: texts }, { transformations: [recorder.watch] });
    return { recorder };
  }

  const claim = (words: string, test: Parameters<typeof itWith>[2]) =>
    itWith(manifests.canal, words, test);

  claim("gives pods the range of the settings", async (texts) => {
    const { recorder } = await build(texts, { ...validSettings, podCidr: "10.9.0.0/16" });

    const { inputs } = await recorder.object("ConfigMap", "canal-config");

    expect(JSON.parse(inputs.data["net-conf.json"])).toMatchObject({
      Network: "10.9.0.0/16",
      Backend: { Type: "vxlan" },
    });
    expect(JSON.stringify(await recorder.objects())).not.toContain("10.244.0.0");
  });

  claim("gives pods the MTU of Azure's interfaces, less VXLAN's share", async (texts) => {
    const { recorder } = await build(texts);

    const { inputs } = await recorder.object("ConfigMap", "canal-config");

    expect(inputs.data["veth_mtu"]).toBe("1450");
  });

  claim(
    "starts its pods anew for another configuration, and for none that is the same",
    async (texts) => {
      const annotations = async (podCidr: string) => {
        const { recorder } = await build(texts, { ...validSettings, podCidr });
        const { inputs } = await recorder.object("DaemonSet", "canal");
        return inputs.spec.template.metadata.annotations;
      };

      const ours = await annotations("10.9.0.0/16");
      expect(ours).toEqual({ "zoned/configuration": expect.any(String) });
      expect(await annotations("10.8.0.0/16")).not.toEqual(ours);
      expect(await annotations("10.9.0.0/16")).toEqual(ours);
    },
  );

  claim("keeps the rest of upstream's configuration", async (texts) => {
    const { recorder } = await build(texts);

    const { inputs } = await recorder.object("ConfigMap", "canal-config");

    expect(JSON.parse(inputs.data["cni_network_config"].replace("__CNI_MTU__", "0"))).toMatchObject(
      {
        plugins: [{ type: "calico", policy: { type: "k8s" } }, { type: "portmap" }],
      },
    );
  });

  claim("tells Calico the node ports when they are others than usual", async (texts) => {
    for (const range of ["20000-22767", "20000+2767"]) {
      const apiServerExtraArgs = { "service-node-port-range": range };
      const kubeadm = { ...validSettings.kubeadm, apiServerExtraArgs };
      const { recorder } = await build(texts, { ...validSettings, kubeadm });

      const { inputs } = await recorder.object("DaemonSet", "canal");

      const [node] = inputs.spec.template.spec.containers.filter(
        (one: any) => one.name === "calico-node",
      );
      expect(node.env).toContainEqual({ name: "FELIX_KUBENODEPORTRANGES", value: "20000:22767" });
    }
  });

  claim("holds no machine's drain by a pod that is not ready", async (texts) => {
    const { recorder } = await build(texts);

    const { inputs } = await recorder.object("PodDisruptionBudget", "calico-kube-controllers");

    expect(inputs.spec).toEqual({
      maxUnavailable: 1,
      selector: { matchLabels: { "k8s-app": "calico-kube-controllers" } },
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    });
  });

  claim("applies everything upstream has", async (texts) => {
    const { recorder } = await build(texts);

    const objects = await recorder.objects();

    const documents = texts
      .get(manifests.canal[0].path)!
      .split(/^---$/m)
      .filter((one) => /^kind:/m.test(one));
    expect(objects).toHaveLength(documents.length);
  });

  it("says what does not fit when the manifest is another", async () => {
    const texts = new Map([
      [manifests.canal[0].path, "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: other }\n"],
    ]);

    await expect(build(texts)).rejects.toThrow(
      /expected one ConfigMap canal-config in the manifest, got 0; .*versions\.ts/,
    );
  });
});

async function build(
  change: Partial<typeof validSettings>,
  texts: ReadonlyMap<string, string> = new Map(),
) {
  const recorder = await Recorder.start();
  const cni = new Cni(
    "cni",
    {
      settings: { ...validSettings, ...change },
      apiServer: { name: "api.example", port: 6443 },
      manifests: texts,
    },
    { transformations: [recorder.watch] },
  );
  return { recorder, cni };
}

/** What there is of flannel. */
const flannel = async (change: Partial<typeof validSettings> = {}) => {
  const { recorder } = await build({ cni: "flannel", ...change });
  const { inputs } = await recorder.object("DaemonSet", "kube-flannel-ds");
  const { spec, metadata } = inputs.spec.template;
  const config = (await recorder.object("ConfigMap", "kube-flannel-cfg")).inputs.data;
  return { recorder, spec, metadata, container: spec.containers[0], config };
};

const subnetEnv = (subnet: string): string =>
  `FLANNEL_NETWORK=10.9.0.0/16\nFLANNEL_SUBNET=${subnet}\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n`;

describe("Flannel", () => {
  it("gives pods the range of the settings", async () => {
    const { config } = await flannel({ podCidr: "10.9.0.0/16" });

    expect(JSON.parse(config["net-conf.json"])).toEqual({
      Network: "10.9.0.0/16",
      Backend: { Type: "vxlan" },
    });
  });

  it("starts its pods anew for another configuration, which they read when they start", async () => {
    const annotations = async (podCidr: string) =>
      (await flannel({ podCidr })).metadata.annotations;

    const ours = await annotations("10.9.0.0/16");
    expect(ours).toEqual({ "zoned/configuration": expect.any(String) });
    expect(await annotations("10.8.0.0/16")).not.toEqual(ours);
  });

  it("may set up the host's network in a namespace of its own", async () => {
    const { recorder } = await flannel();

    const { inputs, resource } = await recorder.object("Namespace", "kube-flannel");

    expect(inputs.metadata.labels["pod-security.kubernetes.io/enforce"]).toBe("privileged");
    for (const [kind, name] of [
      ["ServiceAccount", "flannel"],
      ["ConfigMap", "kube-flannel-cfg"],
    ] as const) {
      const [before] = await dependenciesOf(await recorder.object(kind, name));
      expect([name, before === resource]).toEqual([name, true]);
    }
  });

  it("runs on every machine, whatever its taints, before there is a pod network", async () => {
    expect((await flannel()).spec).toMatchObject({
      hostNetwork: true,
      tolerations: [{ operator: "Exists" }],
    });
  });

  it("asks the API by its name, as kube-proxy's rules may not be there yet", async () => {
    expect((await flannel()).container.env).toEqual(
      expect.arrayContaining([
        { name: "KUBERNETES_SERVICE_HOST", value: "api.example" },
        { name: "KUBERNETES_SERVICE_PORT", value: "6443" },
      ]),
    );
  });

  it("has the node take pods only once flanneld has a subnet for them", async () => {
    const { container, config } = await flannel();
    const { command, args } = container;
    const root = testFolder();
    for (const folder of ["run/flannel", "etc/kube-flannel", "etc/cni/net.d", "opt/bin"]) {
      mkdirSync(join(root, folder), { recursive: true });
    }
    writeFileSync(join(root, "etc/kube-flannel/cni-conf.json"), config["cni-conf.json"]);
    const installed = join(root, "etc/cni/net.d/10-flannel.conflist");
    // Of the machine's Node of before.
    writeFileSync(join(root, "run/flannel/subnet.env"), subnetEnv("10.9.1.1/25"));
    writeFileSync(join(root, "subnet.env"), subnetEnv("10.9.3.129/25"));
    // As flanneld writes it, in one move.
    writeFileSync(
      join(root, "opt/bin/flanneld"),
      `#!/bin/sh
sleep 0.3
[ ! -e ${installed} ] || exit 3
mv ${root}/subnet.env ${root}/run/flannel/subnet.env
until [ -e ${installed} ]; do sleep 0.1; done
echo "$@"`,
      { mode: 0o755 },
    );

    const words = [...command, ...args].map((word: string) =>
      word.replace(/(^|[ =])\/(run|etc|opt)\//gm, `$1${root}/$2/`),
    );
    const { stdout } = await promisify(execFile)(words[0]!, words.slice(1));

    expect(stdout).toBe(`${args.join(" ")}\n`);
    expect(JSON.parse(readFileSync(installed, "utf8")).plugins).toEqual([
      {
        ...{ type: "bridge", bridge: "cni0", mtu: 1450, hairpinMode: true, isDefaultGateway: true },
        forceAddress: true,
        ipam: {
          type: "host-local",
          ranges: [[{ subnet: "10.9.3.128/25" }]],
          routes: [{ dst: "10.9.0.0/16" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ]);
  });

  it("looks at its rules twice a minute, as each look starts ten programs", async () => {
    expect((await flannel()).container.args).toContain("--iptables-resync=30");
  });

  it("takes its subnet from the Node, hides pods from the internet, and has no more rights than that", async () => {
    const { args, securityContext } = (await flannel()).container;
    expect(args).toEqual(expect.arrayContaining(["--ip-masq", "--kube-subnet-mgr"]));
    expect(securityContext).toEqual({
      privileged: false,
      capabilities: { add: ["NET_ADMIN", "NET_RAW"] },
    });
  });

  it("gives the mirror's flanneld no flag that it does not know", async () => {
    const { container } = await flannel();
    const mirrored = readFileSync("tools/programs/modules/flannel/flanneld/main.go", "utf8");
    const known = [...mirrored.matchAll(/\bflag\.\w+\("([^"]+)"/g)].map(([, name]) => name);

    const given = container.args.map((one: string) => one.replace(/^--/, "").replace(/=.*/, ""));
    expect(known).toEqual(expect.arrayContaining(given));
  });

  it("runs one image, the pinned one: the kubelet's package has all plugins that it needs", async () => {
    const { spec, config } = await flannel();

    const { initContainers, containers } = spec;
    expect(initContainers).toBeUndefined();
    expect(containers.map(({ image }: any) => image)).toEqual([
      `ghcr.io/flannel-io/flannel:${versions.flannel}`,
    ]);
    const { plugins } = JSON.parse(config["cni-conf.json"]);
    const named = plugins.flatMap(({ type, ipam }: any) => [type, ...(ipam ? [ipam.type] : [])]);
    expect(cniPlugins).toEqual(expect.arrayContaining(named));
  });

  it("mounts nothing that is not declared, and declares nothing that is not mounted", async () => {
    const { containers, volumes } = (await flannel()).spec;

    const mounted = containers.flatMap((one: any) => one.volumeMounts.map(({ name }: any) => name));
    expect([...new Set(mounted)].sort()).toEqual(volumes.map(({ name }: any) => name).sort());
  });
});

describe("Cni", () => {
  it("applies nothing for those who bring their own", async () => {
    const { recorder, cni } = await build({ cni: "none" });

    expect(await recorder.objects()).toEqual([]);
    expect(cni.targets).toEqual([]);
  });

  itWith(
    manifests.canal,
    "applies Canal, and no flannel beside it, when that is the choice",
    async (texts) => {
      const { recorder } = await build({ cni: "canal" }, texts);

      const daemonSets = await recorder.of("kubernetes:apps/v1:DaemonSet");

      expect(daemonSets.map(({ inputs }) => inputs.metadata.name)).toEqual(["canal"]);
    },
  );
});
