import { createPublicKey, verify } from "node:crypto";

import { subscriptionPath } from "../../../tools/local-azure/arm/resources/ids";
import { type Clients, everyId } from "../../../tools/local-azure/tests/support/arm/sdk-clients";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  refused,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

jest.setTimeout(900_000);

const location = "southeastasia";
const shop = `${subscriptionPath}/resourceGroups/shop`;
const identityId = `${shop}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/billing`;
/** Storage Blob Data Reader. */
const reader = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1";
const workloadIdentities = [
  { namespace: "shop", serviceAccount: "app", roles: [{ role: reader, scope: shop }] },
  { namespace: "shop", serviceAccount: "billing", identityId },
];
const settings = {
  ...fewAddOns,
  controlPlaneCount: 3,
  workerPools: [{ name: "workers", count: 1, size: "Standard_B2s" }],
};

interface Claims {
  readonly iss: string;
  readonly sub: string;
}

describe("service accounts that log in to Azure", () => {
  let cloud: LocalCloud;
  let clients: Clients;
  let before: readonly string[];
  let oldToken: string;

  const token = (audience: string, account = "app") =>
    cloud.kubectl(
      ...["create", "token", account, "--namespace", "shop", "--audience", audience],
      ...["--duration", "1h"],
    );
  const claimsOf = (jwt: string): Claims =>
    JSON.parse(Buffer.from(jwt.split(".")[1]!, "base64url").toString()) as Claims;
  const isAdmitted = async (jwt: string): Promise<boolean> =>
    (await cloud.byToken(jwt, "/api/v1/nodes")) !== 401;
  /** As Entra does: from the issuer's documents, which anybody may read. */
  async function isOfIssuer(jwt: string): Promise<boolean> {
    const { iss } = claimsOf(jwt);
    const discovery = await cloud.readBlob(`${iss}/.well-known/openid-configuration`);
    expect(discovery).toMatchObject({ issuer: iss });
    const { keys } = (await cloud.readBlob(String(discovery["jwks_uri"]))) as {
      keys: (JsonWebKey & { kid: string })[];
    };
    const [head = "", body = "", signature = ""] = jwt.split(".");
    const { kid } = JSON.parse(Buffer.from(head, "base64url").toString()) as { kid: string };
    const key = createPublicKey({
      key: keys.find((one) => one.kid === kid) as never,
      format: "jwk",
    });
    return verify(
      "sha256",
      Buffer.from(`${head}.${body}`),
      key,
      Buffer.from(signature, "base64url"),
    );
  }
  const podOf = async (account: string) =>
    JSON.parse(
      await cloud.kubectl(
        ...["run", "one", "--image", "app", "--namespace", "shop", "--dry-run=server"],
        ...[
          "--output",
          "json",
          "--overrides",
          JSON.stringify({ spec: { serviceAccountName: account } }),
        ],
      ),
    ).spec as { containers: [{ env?: { name: string; value: string }[] }] };
  const clientOf = async (account: string) =>
    (await podOf(account)).containers[0].env?.find(({ name }) => name === "AZURE_CLIENT_ID")?.value;

  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", settings);
    clients = cloud.sdks();
    await clients.resources.resourceGroups.createOrUpdate("shop", { location });
    before = await everyId(clients);
    asPlanned(await cloud.stack.up());
    await cloud.kubectl("create", "namespace", "shop");
    for (const account of ["app", "billing", "other"]) {
      await cloud.kubectl("create", "serviceaccount", account, "--namespace", "shop");
    }
    oldToken = await token("https://kubernetes.default.svc.cluster.local");
  });
  afterAll(() => cloud?.stop());

  it("are refused in the preview while an identity is not there", async () => {
    await cloud.stack.configure({ ...settings, workloadIdentities });

    expect(refused(await cloud.stack.preview())).toMatch(
      /workloadIdentities names \S+\/billing, expected an identity that Azure has/,
    );
  });

  it("are admitted by every API server before one gives such tokens", async () => {
    await clients.identities.userAssignedIdentities.createOrUpdate("shop", "billing", { location });
    before = [...before, identityId].sort();

    const run = asPlanned(await cloud.stack.up());

    expect(run.stdout).toMatch(/admit tokens of https:\S+\. Run pulumi up again/);
    expect(claimsOf(await token("vault")).iss).toBe("https://kubernetes.default.svc.cluster.local");
  });

  it("have tokens of an issuer whose documents anybody may read, and those of before stay valid", async () => {
    asPlanned(await cloud.stack.up());

    const jwt = await token("api://AzureADTokenExchange");
    expect(claimsOf(jwt).sub).toBe("system:serviceaccount:shop:app");
    expect(await isOfIssuer(jwt)).toBe(true);
    expect(await isAdmitted(oldToken)).toBe(true);
    expect(await isAdmitted(await token(claimsOf(jwt).iss))).toBe(true);
  });

  it("are known to their identities, by issuer and subject, and their pods to them", async () => {
    const { iss } = claimsOf(await token("vault"));
    const credentials = async (group: string, name: string) => {
      const found: unknown[] = [];
      for await (const one of clients.identities.federatedIdentityCredentials.list(group, name))
        found.push(one);
      return found;
    };

    expect(await credentials("shop", "billing")).toMatchObject([
      {
        issuer: iss,
        subject: "system:serviceaccount:shop:billing",
        audiences: ["api://AzureADTokenExchange"],
      },
    ]);
    expect(await credentials("zoned-dev", "zoned-dev_shop_app")).toMatchObject([
      { issuer: iss, subject: "system:serviceaccount:shop:app" },
    ]);
    const billing = await clients.identities.userAssignedIdentities.get("shop", "billing");
    const app = await clients.identities.userAssignedIdentities.get(
      "zoned-dev",
      "zoned-dev_shop_app",
    );
    expect(await clientOf("billing")).toBe(billing.clientId);
    expect(await clientOf("app")).toBe(app.clientId);
    expect(await clientOf("other")).toBeUndefined();
  });

  it("change nothing by another update, nor by a refresh", async () => {
    unchanged(await cloud.stack.up());
    succeeded(await cloud.stack.refresh());
    unchanged(await cloud.stack.up());
  });

  it("have both keys published while the key of service accounts changes", async () => {
    await cloud.stack.configure({
      ...settings,
      workloadIdentities,
      serviceAccountKeyGeneration: 2,
    });
    const first = await token("vault");

    asPlanned(await cloud.stack.up());
    asPlanned(await cloud.stack.up());

    const second = await token("vault");
    expect(second.split(".")[0]).not.toBe(first.split(".")[0]);
    expect(await isOfIssuer(first)).toBe(true);
    expect(await isOfIssuer(second)).toBe(true);
  });

  it("leave nothing of theirs with others when the cluster is destroyed", async () => {
    succeeded(await cloud.stack.destroy());

    expect(await everyId(clients)).toEqual(before);
  });
});
