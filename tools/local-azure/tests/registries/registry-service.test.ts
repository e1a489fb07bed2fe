import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { registryLogin } from "../../../../components/kubeadm/registries";
import { askCredentialProvider } from "../../../../tests/support/credential-provider";
import { testFolder } from "../../../../tests/support/test-folder";
import { ImageLayout, mediaTypes } from "../../../mirror/images/image-layout";
import { account } from "../../arm/resources/resource";
import { certificateIn, type Served } from "../../arm/rest/listener";
import { serveRest } from "../../arm/rest/rest";
import { imagesOf, RegistryService } from "../../registries/registry-service";
import { createResources, newArm } from "../support/arm/fixture";
import { group, roleDefinition, valid } from "../support/arm/valid-resources";

const server = "zonedimages.azurecr.io";
const [registryId, registryBody] = valid.registry;
const roles = {
  LegacyRegistryPermissions: roleDefinition("7f951dda-4ed3-4680-a7ca-43fe172d538d"),
  AbacRepositoryPermissions: roleDefinition("b93aa761-3e63-49ed-ac28-beffa264f7ac"),
};
const folder = testFolder();
const assignment = `${registryId}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-000000000005`;
const { arm } = newArm();

let service: Served;
let resourceManager: Served;
let ca: string;
let digest: string;
let identity: { resourceId: string; clientId: string; principalId: string };

beforeAll(async () => {
  await createResources(arm, "registry");
  const resourceId = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubelets`;
  const { body } = await arm.put(resourceId, { location: "westeurope" });
  const { clientId, principalId } = body as Record<string, string>;
  identity = { resourceId, clientId: clientId!, principalId: principalId! };
  const layout = new ImageLayout(imagesOf(folder, server));
  const config = layout.add(mediaTypes.config, "what it runs");
  const manifest = layout.add(mediaTypes.manifest, JSON.stringify({ config, layers: [] }));
  layout.name(`${server}/shop/app:1`, manifest, "a test");
  digest = config.digest;
  const certificate = await certificateIn(folder);
  ca = certificate.authority;
  writeFileSync(join(folder, "ca.pem"), ca);
  service = await new RegistryService(arm, folder).serve(0, certificate);
  resourceManager = await serveRest(arm, 0, {}, certificate);
});
afterAll(async () => {
  await service.close();
  await resourceManager.close();
});

const assign = async (mode: keyof typeof roles): Promise<void> => {
  const { principalId } = identity;
  await arm.put(registryId, { ...registryBody, roleAssignmentMode: mode });
  await arm.put(assignment, { principalId, roleDefinitionId: roles[mode] });
};
afterEach(() => arm.delete(assignment).catch(() => undefined));

/** What a kubelet's plugin comes back with for a machine that has the identity. */
async function logIn() {
  const { content } = registryLogin({
    ...{ tenantId: account.tenantId, clientId: identity.clientId },
    resourceManagerEndpoint: `https://127.0.0.1:${resourceManager.port}`,
  });
  const machine = {
    ...{ address: "172.16.1.4", mac: "00:0d:3a:01:02:03", compute: {}, inboundRules: [] },
    ...{ subnet: { address: "172.16.1.0", prefix: "24" }, identities: [identity] },
  };
  const { stdout, stderr } = await askCredentialProvider({
    ...{ image: `${server}/shop/app:1`, login: content, machine, port: service.port, ca },
  });
  if (stdout === "") throw new Error(stderr);
  const { auth } = JSON.parse(stdout) as { auth: Record<string, Record<string, string>> };
  return `${auth[server]!["username"]}:${auth[server]!["password"]}`;
}

/** What curl is answered, and after it the status. */
async function curl(path: string, ...options: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("curl", [
    ...["--silent", "--cacert", join(folder, "ca.pem"), "--write-out", " %{http_code}"],
    ...["--connect-to", `${server}:443:127.0.0.1:${service.port}`],
    ...[...options, `https://${server}${path}`],
  ]);
  return stdout;
}
const tokenPath = (repository: string): string =>
  `/oauth2/token?service=${server}&scope=repository:${repository}:pull`;
async function bearer(login: string, repository: string): Promise<string[]> {
  const said = await curl(tokenPath(repository), "--user", login);
  const { access_token: token } = JSON.parse(said.replace(/ \d+$/, "")) as Record<string, string>;
  return ["--header", `Authorization: Bearer ${token}`];
}

it.each(["LegacyRegistryPermissions", "AbacRepositoryPermissions"] as const)(
  "gives images to who logs in by Azure's credential provider, with the role that counts in mode %s",
  async (mode) => {
    await assign(mode);

    const token = await bearer(await logIn(), "shop/app");

    expect(await curl("/v2/shop/app/manifests/1", ...token)).toMatch(/"config".* 200$/);
    expect(await curl(`/v2/shop/app/blobs/${digest}`, ...token)).toBe("what it runs 200");
    expect(await curl("/v2/shop/other/manifests/1", ...token)).toMatch(/UNAUTHORIZED.* 401$/);
  },
);

it("refuses who has no role there, also one that had it when it logged in", async () => {
  await expect(logIn()).rejects.toThrow(/oauth2\/exchange responded with status code 401/);

  await assign("LegacyRegistryPermissions");
  const login = await logIn();
  await arm.delete(assignment);

  expect(await curl(tokenPath("shop/app"), "--user", login)).toMatch(/UNAUTHORIZED.* 401$/);
});

it("says to everybody else where to log in, and gives nobody a token for nothing", async () => {
  const said = await curl("/v2/shop/app/manifests/1", "--head");

  expect(said).toMatch(/ 401$/);
  expect(said).toContain(
    `Bearer realm="https://${server}/oauth2/token",service="${server}",scope="repository:shop/app:pull"`,
  );
  expect(await curl(tokenPath("shop/app"))).toMatch(/ 401$/);
  expect(await curl(tokenPath("shop/app"), "--user", "somebody:secret")).toMatch(/ 401$/);
});
