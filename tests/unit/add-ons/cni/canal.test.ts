import { Canal } from "../../../../components/add-ons/cni";
import { manifests } from "../../../../components/versions";
import { Recorder } from "../../../support/record";
import { validSettings } from "../../../support/sample";
import { itWith } from "../../../support/upstream";

async function build(texts: ReadonlyMap<string, string>, settings = validSettings) {
  const recorder = await Recorder.start();
  new Canal("canal", { settings, manifests: texts }, { transformations: [recorder.watch] });
  return { recorder };
}

const claim = (words: string, test: Parameters<typeof itWith>[2]) =>
  itWith(manifests.canal, words, test);

describe("Canal", () => {
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
