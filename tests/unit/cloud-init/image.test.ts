import { FakeMachine, firstBootPrograms, shipFirstBoot } from "../../support/fake-machine";
import { serve } from "../../support/listen";

const names = ["kube-apiserver:v9.9.9", "pause:3.99"].map((name) => `registry.k8s.io/${name}`);
const addOns = ["quay.io/calico/cni:v7", "docker.io/flannel/flannel:v8"];
const tools = "ca-certificates conntrack curl ethtool ipset iptables ipvsadm jq nftables socat";

/** What the fakes of dpkg-query and ctr say. */
const held = (version: string) =>
  [
    ...[...tools.split(" "), "containerd", "runc", "docker.io"].map(
      (one) => `ii  package ${one} 1-1`,
    ),
    ...["kubelet", "kubeadm", "kubectl"].map((one) => `hi  package ${one} ${version}-1.1`),
    "",
  ].join("\n");
const pulled = (digest: string) =>
  [
    "REF TYPE DIGEST SIZE PLATFORMS LABELS",
    ...[...names, ...addOns].map((name) => `${name} application/list ${digest} 9MiB linux/amd64 -`),
    `registry.k8s.io/pause@${digest} application/list ${digest} 9MiB linux/amd64 -`,
    `${digest} application/list ${digest} 9MiB linux/amd64 -`,
  ].join("\n");

const programs = {
  ...firstBootPrograms(names),
  "dpkg-query": `case $1 in
    --show) cat "$root/packages" ;;
    *) ${firstBootPrograms([])["dpkg-query"]} ;;
  esac`,
  dpkg: '[[ $1 == --configure ]] || exec /usr/bin/dpkg "$@"',
  ctr: 'cat "$root/images"',
  "cloud-init": "",
  "update-ca-certificates": "",
  waagent: 'rm "$root/var/lib/waagent/ovf-env.xml" "$root/accounts"',
  getent: 'grep --quiet --no-messages "^$2:" "$root/accounts"',
  sync: "",
  "systemd-run": '"${@: -3}"',
};

const nowhere = "http://127.0.0.1:1";
let mirror: string;
beforeAll(async () => (mirror = await serve((_, reply) => void reply.end("key"))));

/** A machine that has all that its settings want, as the one of which an image is made. */
function machine(MIRROR = mirror): FakeMachine {
  const made = new FakeMachine(programs);
  made.ship("generalize.sh", "/opt/zoned/generalize.sh");
  shipFirstBoot(made, { MIRROR });
  made.write("/etc/zoned/add-on-images", addOns.map((image) => `${image}\n`).join(""));
  made.write("/packages", held("9.9.9"));
  made.write("/images", pulled("sha256:1"));
  return made;
}

const containerdPull = (image: string) =>
  `--namespace k8s.io images pull --hosts-dir /etc/containerd/certs.d ${image}`;
const mirrorPull = (image: string) => {
  const here = image.replace(/^[^/]+/, mirror.slice("http://".length));
  return [`pull ${here}`, `tag ${here} ${image}`, `image rm ${here}`];
};

const boot = (of: FakeMachine) => of.run("/opt/zoned/first-boot.sh");
const stepsOf = (stdout: string) =>
  [...stdout.matchAll(/first boot: (.*): done after/g)].map(([, name]) => name);

/** A machine of the image that another one was generalized for. */
async function ofImage(MIRROR = mirror): Promise<FakeMachine> {
  const made = machine(MIRROR);
  const { stdout } = await made.run("/opt/zoned/first-boot.sh", ["image_contents"]);
  made.write("/opt/zoned/image", stdout);
  made.forgetCalls();
  return made;
}

it("fetches nothing where the image has everything, and configures the machine as any other", async () => {
  const made = await ofImage(nowhere);

  const { code, stdout } = await boot(made);

  expect([code, stepsOf(stdout)]).toEqual([
    0,
    [
      "image",
      "kernel modules",
      "kernel settings",
      "swap off",
      "firewall for pods",
      "containerd settings",
    ],
  ]);
  expect(made.callsOf("apt-get")).toEqual([]);
  expect(made.callsOf("kubeadm").join()).not.toContain("pull");
  expect(made.has("/var/lib/zoned/first-boot.done")).toBe(true);
});

const set = (made: FakeMachine, name: string, value: string) => {
  const environment = made.read("/etc/zoned/first-boot.env");
  const line = new RegExp(`^${name}=.*$`, "m");
  made.write("/etc/zoned/first-boot.env", environment.replace(line, `${name}='${value}'`));
};

it.each<[string, (made: FakeMachine) => void, string]>([
  [
    "a package of another version",
    (made) => made.write("/packages", held("9.9.8")),
    "package kubelet 9.9.9-*",
  ],
  ["no such image", (made) => made.write("/images", ""), `image ${names[0]} *`],
  [
    "an image of another digest than it was made with",
    (made) => made.write("/images", pulled("sha256:2")),
    `image ${names[1]} sha256:1 any more`,
  ],
  [
    "a containerd that is too old by now",
    (made) => made.program("containerd", "echo containerd.io containerd 1.7.23 abcdef"),
    "package containerd 1.7.24",
  ],
  [
    "a Docker that is too old by now",
    (made) => made.program("dockerd", "echo Docker version 26.1.2, build abc"),
    "package docker.io 26.1.3",
  ],
  [
    "what logs in to registries, which came later",
    (made) => set(made, "CREDENTIAL_PROVIDER_VERSION", "v9.9.1"),
    "program azure-acr-credential-provider v9.9.1",
  ],
  [
    "what goes between the kubelet and Docker, which came later",
    (made) => set(made, "CONTAINER_RUNTIME", "cri-dockerd"),
    "program cri-dockerd 0.9.9",
  ],
  [
    "Docker, where the kubelet has had no need of it",
    (made) => {
      set(made, "CONTAINER_RUNTIME", "cri-dockerd");
      made.write("/packages", held("9.9.9").replace("ii  package docker.io 1-1\n", ""));
      made.program("systemctl", '[[ $* != *" docker.service" ]]');
      for (const one of ["docker", "dockerd"]) made.program(one, "exit 127");
    },
    "package docker.io *",
  ],
  [
    "what came from another mirror",
    (made) => set(made, "MIRROR", "https://mirror.example"),
    `these settings, but mirror ${nowhere}`,
  ],
])("knows what the image lacks: %s", async (_, change, named) => {
  const made = await ofImage(nowhere);
  change(made);
  made.write("/var/lib/zoned/lacking", "");

  expect((await made.run("/opt/zoned/first-boot.sh", ["compare_image"])).code).toBe(0);

  expect(made.read("/var/lib/zoned/lacking").split("\n")).toContain(named);
});

it("finds an image of Docker Hub by the name that Docker has for it", async () => {
  const made = await ofImage();
  set(made, "CONTAINER_RUNTIME", "cri-dockerd");
  made.write("/usr/local/bin/cri-dockerd", "#!/bin/sh\necho cri-dockerd 0.9.9\n", 0o755);
  const listed = [...names, addOns[0]!, "flannel/flannel:v8"].map((name) => `image ${name} id`);
  made.program(
    "docker",
    `[[ $* != "image ls"* ]] || printf '%s\\n' ${listed.map((one) => `'${one}'`).join(" ")}`,
  );
  const { stdout } = await made.run("/opt/zoned/first-boot.sh", ["image_contents"]);
  made.write("/opt/zoned/image", stdout);
  made.write("/var/lib/zoned/lacking", "");

  const compared = await made.run("/opt/zoned/first-boot.sh", ["compare_image"]);

  expect(compared).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(made.read("/var/lib/zoned/lacking")).toBe("");
  // Neither answers before it runs.
  const started = made.callsOf("systemctl").filter((call) => call.startsWith("start "));
  expect(started).toEqual(["start containerd.service", "start docker.service"]);
});

it("leaves an add-on's image that the image lacks to the kubelet, and says so", async () => {
  const made = await ofImage(nowhere);
  made.write("/etc/zoned/add-on-images", "quay.io/calico/cni:v9\n");

  const { code } = await boot(made);

  expect([code, made.callsOf("apt-get")]).toEqual([0, []]);
  expect(made.read("/var/log/zoned.log")).toContain(
    "the image does not have image quay.io/calico/cni:v9, which the kubelet pulls\n",
  );
});

it("names and installs what the image lacks, as where it is one of other settings", async () => {
  const made = await ofImage();
  set(made, "CONTAINER_RUNTIME", "containerd");

  const { code, stdout } = await boot(made);

  expect(code).toBe(0);
  expect(stdout).toContain(
    "first boot: the image does not have these settings, but container-runtime docker\n",
  );
  expect(stepsOf(stdout)).toEqual(
    expect.arrayContaining(["egress", "kubernetes packages", "images"]),
  );
  expect(made.callsOf("apt-get").join("\n")).toContain("kubelet=9.9.9-*");
});

it.each(["", "https://other.example"])(
  "asks no mirror of the image's where the settings name %j now, and restarts Docker for that alone",
  async (MIRROR) => {
    const made = machine("https://mirror.example");
    made.write("/usr/lib/systemd/system/docker.service", "");
    const configured = async () => {
      made.forgetCalls();
      for (const part of ["install_runtime", "configure_containerd"])
        expect((await made.run("/opt/zoned/first-boot.sh", [part])).code).toBe(0);
      return made.callsOf("systemctl").includes("restart docker.service");
    };
    await configured();
    const again = await configured();

    set(made, "MIRROR", MIRROR);

    expect([again, await configured()]).toEqual([false, true]);
    const hosts = "/etc/containerd/certs.d/_default/hosts.toml";
    expect(made.has(hosts) ? made.read(hosts).split("\n")[0] : "").toBe(
      MIRROR && `[host."${MIRROR}"]`,
    );
    expect(JSON.parse(made.read("/etc/docker/daemon.json"))["registry-mirrors"]).toEqual(
      [MIRROR].filter((one) => one !== ""),
    );
  },
);

it("refuses what it lacks where there is no way to it, and has named it", async () => {
  const made = await ofImage(nowhere);
  made.write("/packages", held("9.9.8"));

  const { code, stdout } = await boot(made);

  expect(code).toBe(1);
  expect(made.read("/var/lib/zoned/first-boot.failed")).toBe("egress, exit code 1\n");
  expect(stdout).toContain("the image does not have package kubelet 9.9.9-*");
  expect(made.callsOf("apt-get")).toEqual([]);
});

describe("a machine that an image is made of", () => {
  const ovf = "<ns1:HostName>builder</ns1:HostName><ns1:UserName>jane</ns1:UserName>\n";

  async function generalized(
    change: (made: FakeMachine) => void = () => undefined,
    env: Record<string, string> = {},
  ) {
    const made = machine();
    made.write("/var/lib/zoned/first-boot.done", "");
    made.write("/var/log/zoned.log", "");
    made.write("/etc/machine-id", "0123\n");
    made.write("/etc/ssh/ssh_host_rsa_key", "secret");
    made.write("/etc/kubernetes/kubelet.conf", "secret");
    for (const own of ["pki/kubelet.key", "config.yaml", "kubeadm-flags.env"])
      made.write(`/var/lib/kubelet/${own}`, "secret");
    made.write("/var/lib/dbus/machine-id", "secret");
    made.write("/var/lib/waagent/ovf-env.xml", ovf);
    made.write("/accounts", "jane:x:1000:\n");
    made.write("/root/.bash_history", "secret");
    made.write("/etc/kubernetes/manifests/.keep", "");
    made.write("/etc/zoned/firewall.nft", "");
    change(made);
    return { made, outcome: await made.run("/opt/zoned/generalize.sh", [], env) };
  }

  it("says what it has, and forgets who it is before it is off", async () => {
    const { made, outcome } = await generalized();

    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    expect(outcome.stdout).toBe(made.read("/opt/zoned/image"));
    expect(outcome.stdout).toContain("package kubelet 9.9.9-1.1\n");
    expect(outcome.stdout.match(/^image .*$/gm)).toEqual(
      [...names, ...addOns].map((name) => `image ${name} sha256:1`),
    );
    expect(made.read("/etc/machine-id")).toBe("");
    for (const gone of [
      "/etc/ssh/ssh_host_rsa_key",
      "/etc/kubernetes/kubelet.conf",
      "/etc/zoned/first-boot.env",
      "/etc/zoned/add-on-images",
      "/var/lib/zoned",
      ...["pki", "config.yaml", "kubeadm-flags.env"].map((own) => `/var/lib/kubelet/${own}`),
      "/var/lib/dbus/machine-id",
      "/var/log/zoned.log",
      "/root/.bash_history",
    ]) {
      expect([gone, made.has(gone)]).toEqual([gone, false]);
    }
    for (const kept of ["/etc/kubernetes/manifests", "/etc/zoned/firewall.nft"]) {
      expect([kept, made.has(kept)]).toEqual([kept, true]);
    }
    expect(made.callsOf("cloud-init")).toEqual(["clean --logs"]);
    expect(made.callsOf("waagent")).toEqual(["-deprovision+user -force"]);
    // A kubelet that runs would write its files anew.
    expect(made.callsOf("systemctl")).toEqual(["stop kubelet.service", "poweroff"]);
  });

  it.each<[string, string, (image: string) => string[], string?]>([
    ["containerd", "ctr", (image: string) => [containerdPull(image)]],
    ["cri-dockerd", "docker", (image: string) => mirrorPull(image)],
    ["cri-dockerd", "docker", (image: string) => [`pull ${image}`], ""],
  ])(
    "has the images of add-ons before it says what it has: by %s, with %s",
    async (runtime, program, calls, from = mirror) => {
      const { made, outcome } = await generalized((one) => {
        one.program("cri-dockerd", "");
        one.write("/usr/local/bin/cri-dockerd", "#!/bin/sh\necho cri-dockerd 0.9.9\n", 0o755);
        set(one, "CONTAINER_RUNTIME", runtime);
        set(one, "MIRROR", from);
      });

      expect(outcome).toMatchObject({ code: 0, stderr: "" });
      const all = made.callsOf(program);
      expect(all.slice(0, -1)).toEqual(addOns.flatMap(calls));
      expect(all.at(-1)).toMatch(/^(--namespace k8s.io images list|image ls)/);
    },
  );

  it("has the rules by which volumes are found on NVMe, whatever its own disk is, where there is such a package", async () => {
    const packages = async (show: string) => {
      const { made } = await generalized((one) => one.program("apt-cache", show));
      return made.callsOf("apt-get").map((call) => call.split(" ").at(-1));
    };

    expect(await packages("")).toEqual(["azure-vm-utils"]);
    expect(await packages("exit 100")).toEqual([]);
  });

  it("stays on where the image of an add-on cannot be pulled, and says which", async () => {
    const { made, outcome } = await generalized((one) =>
      one.program("ctr", '[[ $* != *pull*calico* ]] || { echo "no route" >&2; exit 1; }'),
    );

    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toMatch(/pulling quay.io\/calico\/cni:v7\n.*no route/);
    expect(outcome.stderr).toContain("pull_add_on_images failed");
    expect(made.callsOf("systemd-run")).toEqual([]);
  });

  it("stays on where a registry stalls, and says so before Azure ends the step after 90 minutes", async () => {
    const { made, outcome } = await generalized(
      (one) => one.program("ctr", "[[ $* != *pull* ]] || { sleep 1; exec /bin/sleep 300; }"),
      { HANGS: "pull_add_on_images" },
    );

    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toContain("pull_add_on_images failed");
    expect(made.callsOf("systemd-run")).toEqual([]);
    const limits = made.callsOf("timeout").filter((call) => call.endsWith(" pull_add_on_images"));
    const seconds = limits.reduce((sum, call) => sum + Number(call.split(" ")[1]), 0);
    expect(seconds / 60).toBeLessThan(75);
  });

  it("keeps no password of a proxy", async () => {
    const { made } = await generalized((one) => {
      one.write("/etc/zoned/proxy.env", "https_proxy='http://me:hush@proxy.example'\n", 0o600);
      one.write("/etc/apt/apt.conf.d/95zoned-proxy", "hush");
      one.write("/var/lib/zoned/proxy", "hush");
    });

    expect(made.has("/etc/zoned/proxy.env")).toBe(false);
    expect(made.read("/etc/apt/apt.conf.d/95zoned-proxy")).toBe("");
    expect(made.callsOf("systemctl").at(-1)).toBe("poweroff");
  });

  it.each<[string, (made: FakeMachine) => void, string]>([
    [
      "one part of it fails",
      (made) => made.program("cloud-init", "exit 3"),
      "exit code 3 of: cloud-init clean --logs",
    ],
    [
      "Azure's agent has ended before all was done, which its exit code does not say",
      (made) => made.program("waagent", ""),
      "waagent has left /var/lib/waagent/ovf-env.xml or the account jane",
    ],
    [
      "Azure's agent could not delete the account, which its exit code does not say",
      (made) => made.program("waagent", 'rm "$root/var/lib/waagent/ovf-env.xml"'),
      "or the account jane",
    ],
    [
      "Azure's agent does not know the account, and would leave it out",
      (made) => made.removeFile("/var/lib/waagent/ovf-env.xml"),
      "/var/lib/waagent/ovf-env.xml: No such file",
    ],
  ])("stays on, and so is no image, and its console has why: %s", async (_, change, says) => {
    const { made, outcome } = await generalized(change);

    expect(made.callsOf("systemctl")).not.toContain("poweroff");
    expect(outcome.stderr.replaceAll(made.root, "")).toContain(says);
    expect(made.callsOf("systemd-run").join()).toContain("StandardError=journal+console");
  });

  it("begins a first boot again that has failed, and ends with its reason", async () => {
    const failing = (one: FakeMachine) => {
      one.removeFile("/var/lib/zoned/first-boot.done");
      one.write("/var/lib/zoned/first-boot.failed", "images, exit code 1\n");
      one.program("kubeadm", "exit 9");
    };
    const { made, outcome } = await generalized(failing);

    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toContain("first boot failed: ");
    expect(made.callsOf("systemd-run")).toEqual([]);
  });
});
