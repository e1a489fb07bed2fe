import { parse } from "yaml";

import { configurationOf, kubeadmFiles } from "../../../components/kubeadm/kubeadm";
import { credentialProvider, registryLogin } from "../../../components/kubeadm/registries";
import { machine, specOf, validSettings } from "../../support/sample";

const registries = ["ourimages.azurecr.io", "mirror01.azurecr.io"];
const configFlag = "image-credential-provider-config";

/** What kubeadm gives a kubelet by each way in which it starts one, by the file's name. */
function flagsIn(servers: readonly string[]): Record<string, Record<string, string>> {
  const files = kubeadmFiles(specOf(validSettings, { registries: servers }), machine);
  return Object.fromEntries(
    ["init", "join", "kubelet"].map((name) => {
      const { content } = files.find(({ path }) => path === `/etc/zoned/kubeadm-${name}.yaml`)!;
      const { nodeRegistration } = parse(content.split("---\n")[0]!) as {
        nodeRegistration: { kubeletExtraArgs: { name: string; value: string }[] };
      };
      const flags = nodeRegistration.kubeletExtraArgs.map((one) => [one.name, one.value] as const);
      return [name, Object.fromEntries(flags)];
    }),
  );
}

it("has a kubelet that initializes, joins or is changed read the file that comes with it", () => {
  const files = kubeadmFiles(specOf(validSettings, { registries }), machine);

  for (const flags of Object.values(flagsIn(registries))) {
    const file = files.find(({ path }) => path === flags[configFlag]);
    expect(parse(file!.content)).toMatchObject({ kind: "CredentialProviderConfig" });
    expect(flags["image-credential-provider-bin-dir"]).toBe("/opt/zoned/credential-providers");
  }
});

it("gives a kubelet without registries none of it, since it would not start without the program", () => {
  expect(credentialProvider([])).toEqual({ flags: {}, files: [] });
  for (const flags of Object.values(flagsIn([]))) expect(flags).not.toHaveProperty(configFlag);
});

it("asks for a login to the registries that are named, whichever come first, and to no other", () => {
  const [file] = credentialProvider(registries).files;

  expect(parse(file!.content).providers).toEqual([
    expect.objectContaining({
      name: "acr-credential-provider",
      matchImages: ["mirror01.azurecr.io", "ourimages.azurecr.io"],
    }),
  ]);
  expect(credentialProvider([...registries].reverse())).toEqual(credentialProvider(registries));
});

it("starts kubelets anew for other registries, since they read of them at their start alone", () => {
  const configurations = [[], registries.slice(1), registries].map((servers) =>
    configurationOf(specOf(validSettings, { registries: servers }), machine),
  );

  expect(new Set(configurations).size).toBe(3);
});

const login = (resourceManagerEndpoint: string) => {
  const { content, ...file } = registryLogin({
    ...{ tenantId: "the-tenant", clientId: "the-kubelets", resourceManagerEndpoint },
  });
  return { file, content: JSON.parse(content) as Record<string, unknown> };
};

it.each([
  ["https://management.azure.com", { cloud: "AzurePublicCloud" }],
  ["https://management.chinacloudapi.cn", { cloud: "AzureChinaCloud" }],
  ["http://127.0.0.1:1", { resourceManagerEndpoint: "http://127.0.0.1:1" }],
])("logs in by the kubelets' identity, in the cloud at %s", (endpoint, cloud) => {
  const { file, content } = login(endpoint);

  expect(content).toEqual({
    ...cloud,
    ...{ tenantId: "the-tenant", useManagedIdentityExtension: true },
    userAssignedIdentityID: "the-kubelets",
  });
  const [{ args }] = parse(credentialProvider(registries).files[0]!.content).providers;
  expect(args).toEqual([file.path]);
});
