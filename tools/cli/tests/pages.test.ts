import { readFileSync } from "node:fs";
import { join } from "node:path";

import { patchOf } from "../arguments";
import { settingsOf, settingsPage } from "../settings";
import { checkout } from "../../shared/checkout";
import { declared } from "../../../tests/support/stack";
import { cloudProviderProblems } from "../../../components/add-ons/manifests/cloud-provider-images";
import { cloudInitText } from "../../../components/machine/payload";
import { manifests, versions } from "../../../components/versions";
import { sourcesOf } from "../../../components/plan/ways";
import { patched } from "../../../components/settings/rules/known-arguments";
import { validSettings } from "../../../tests/support/sample";
import { itWith } from "../../../tests/support/unless";
import { wantedImages } from "../../mirror/images/wanted-images";
import { firewallPage, machineHosts, operatorHosts, registryOf } from "../firewall";

describe("the page of settings", () => {
  const pulumiYaml = readFileSync(join(checkout, "Pulumi.yaml"), "utf8");

  it("in docs/settings.md is what npm run settings writes from Pulumi.yaml", () => {
    const page = readFileSync(join(checkout, "docs/settings.md"), "utf8");

    expect(page).toBe(settingsPage(pulumiYaml));
  });

  it("has the whole text of every setting", () => {
    const texts = settingsOf(pulumiYaml).map(({ name, text, change }) => [
      name,
      `${text} ${change}`,
    ]);

    expect(texts).toEqual(
      Object.entries(declared).map(([name, { description }]) => [name, description]),
    );
  });

  it("groups settings under the headings of Pulumi.yaml, with type and default", () => {
    const page = settingsPage(`
config:
  # Network

  egress: # string
    default: zonal
    description: The way of <stack>. A change replaces nothing.
  ranges: # array of strings
    default: []
    description: Who. A change replaces every machine.

  # Safety

  protect: # boolean
    default: false
    description: Whether. A change is refused.
`);

    expect(page.slice(page.indexOf("## "))).toBe(`## Network

| setting | default | what it is | a change |
|---|---|---|---|
| \`egress\`<br/>string | \`zonal\` | The way of &lt;stack>. | A change replaces nothing. |
| \`ranges\`<br/>array of strings | \`[]\` | Who. | A change replaces every machine. |

## Safety

| setting | default | what it is | a change |
|---|---|---|---|
| \`protect\`<br/>boolean | \`false\` | Whether. | A change is refused. |
`);
  });
});

describe("the list of hosts", () => {
  const isListed = (host: string): boolean =>
    machineHosts.some((one) => one.host === host || one.host.startsWith(`registry-1.${host}`));

  it("in docs/firewall.md is what npm run firewall writes", () => {
    expect(readFileSync(join(checkout, "docs/firewall.md"), "utf8")).toBe(firewallPage());
  });

  it("has every host that a first boot tries to connect to", () => {
    const hosts = [
      ...cloudInitText("first-boot.sh").matchAll(/https:\/\/([\w-]+(?:\.[\w-]+)+)/g),
    ].map(([, host]) => host!);

    expect(hosts.length).toBeGreaterThan(5);
    expect(hosts.filter((host) => !isListed(host))).toEqual([]);
  });

  itWith(
    [...manifests.canal, ...manifests.diskDriver],
    "has the registry of every image that a machine may pull",
    (texts) => {
      const all = [...texts.values()].map((text) => ({ part: "Canal" as const, text }));
      const kubeadms = ["registry.k8s.io/kube-apiserver:v1"];
      const images = wantedImages([versions.kubernetes], kubeadms, all).filter(
        ({ part }) => part !== "tests",
      );

      expect(images.length).toBeGreaterThan(15);
      expect(images.map(({ image }) => registryOf(image)).filter((one) => !isListed(one))).toEqual(
        [],
      );
    },
  );

  it("has all hosts that Docker Hub leads to, and those of Ubuntu's packages for arm64", () => {
    const of = (pattern: RegExp) =>
      machineHosts
        .filter(({ host }) => pattern.test(host))
        .map(({ host, port = 443, when }) => `${host}:${port} ${when}`);

    // https://docs.docker.com/desktop/setup/allow-list/
    expect(of(/docker/)).toEqual(
      [
        "registry-1.docker.io",
        "auth.docker.io",
        "production.cloudfront.docker.com",
        "production.cloudflare.docker.com",
        "docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
      ].map((host) => `${host}:443 cni canal`),
    );
    expect(of(/ports\.ubuntu/)).toEqual([
      "azure.ports.ubuntu.com:80 a size with Arm processors",
      "ports.ubuntu.com:80 a size with Arm processors",
    ]);
  });

  it("has the host of every manifest, for where the update runs", () => {
    const hosts = Object.values(manifests)
      .flat()
      .map(({ url }) => new URL(url).hostname);

    expect(hosts.filter((host) => !operatorHosts.some((one) => one.host === host))).toEqual([]);
  });

  it("has the Blob service for where the update runs, which writes and reads blobs itself", () => {
    const wanted = operatorHosts.filter(({ host }) => host.endsWith(".blob.core.windows.net"));

    expect(wanted.map(({ when }) => when)).toEqual([
      "workloadIdentities, machineIdentity false",
      "restoreFrom",
      "pulumi login azblob://",
    ]);
  });

  it("has where Pulumi looks for plugins, its own host as the last one, and for the key of a stack", () => {
    const azure = readFileSync(join(checkout, "docs/azure.md"), "utf8");
    const [, vault] = /azurekeyvault:\/\/([^/]+)/.exec(azure)!;
    const plugins = operatorHosts.filter(({ why }) => why.startsWith("Pulumi's plugins"));

    expect(operatorHosts.map(({ host }) => host)).toContain(vault);
    // https://github.com/pulumi/pulumi/blob/v3.276.0/sdk/go/common/workspace/plugins.go
    expect(plugins.map(({ host }) => host)).toEqual([
      ...["github.com", "release-assets.githubusercontent.com", "api.github.com"],
      "get.pulumi.com",
    ]);
  });

  it("has Entra for each setting by which something of a machine asks it for tokens or keys", () => {
    const entra = machineHosts.filter(({ host }) => host === "login.microsoftonline.com");

    expect(entra.map(({ when }) => when)).toEqual([
      ...["servicePrincipalClientId", "machineIdentity false", "workloadIdentities", "entra"],
    ]);
  });

  it("has every host that a preview asks whether it has the cloud provider's release, for where the update runs", async () => {
    const fetched = jest.spyOn(globalThis, "fetch").mockResolvedValue(new Response());
    const settings = { ...validSettings, cloudProvider: true, registries: ["/a/registry"] };

    await cloudProviderProblems(settings);

    const asked = fetched.mock.calls.map(([url]) => new URL(String(url)).hostname);
    fetched.mockRestore();
    expect(asked).toHaveLength(3);
    expect(asked.filter((host) => !operatorHosts.some((one) => one.host === host))).toEqual([]);
  });

  it("has every host that a preview with egress none names", () => {
    const all = { containerRuntime: "cri-dockerd", registries: ["/a/registry"] } as const;
    const hosts = sourcesOf(all, true).map((source) => /\((.+)\)$/.exec(source)?.[1] ?? source);

    expect(hosts.filter((host) => !machineHosts.some((one) => one.host === host))).toEqual([]);
  });
});

describe("what npm run arguments writes", () => {
  const newest = { flags: { port: "int", quiet: "bool" }, values: { list: ["a", "b"] } };

  it.each([
    ["nothing", newest, {}],
    [
      "a value",
      { ...newest, flags: { port: "int", quiet: "string" } },
      { flags: { quiet: "string" } },
    ],
    ["what is new since", { ...newest, flags: { port: "int" } }, { flags: { quiet: null } }],
    ["what has gone since", { ...newest, kinds: { a: ["b"] } }, { kinds: { a: ["b"] } }],
    ["a list, as a whole", { ...newest, values: { list: ["b"] } }, { values: { list: ["b"] } }],
  ])("of the minor before is %s, where that alone differs", (_, before, patch) => {
    expect(patchOf(newest, before)).toEqual(patch);
    expect(patched(newest, patch)).toEqual(before);
  });
});
