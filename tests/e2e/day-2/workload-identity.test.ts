import { subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { type Clients, everyId, soon } from "../../../tools/local-azure/tests/support/arm/clients";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  refused,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

const location = "southeastasia";
const shop = `${subscriptionPath}/resourceGroups/shop`;
const identityId = `${shop}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/billing`;
/** Storage Blob Data Reader. */
const reader = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1";
const workloadIdentities = [
  { namespace: "shop", serviceAccount: "app", roles: [{ role: reader, scope: shop }] },
  { namespace: "shop", serviceAccount: "billing", identityId },
];
const more = [...workloadIdentities, { namespace: "shop", serviceAccount: "other", identityId }];
const container = "https://shopblobs.blob.core.windows.net/orders";
const settings = {
  ...fewAddOns,
  controlPlaneCount: 3,
  workerPools: [{ name: "workers", count: 1, size: "Standard_B2s" }],
};

interface Claims {
  readonly iss: string;
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
  /** What a bearer of this token finds in the shop's container as an identity: how many blobs, or why it is refused. */
  const finds = async (jwt: string, client: string): Promise<number | string> => {
    const blobs = cloud.containerFor(container, client, jwt).listBlobsFlat();
    let count = 0;
    try {
      for await (const _ of blobs) count++;
      return count;
    } catch (error) {
      const { message, code = "" } = error as { message: string; code?: string };
      return /AADSTS\d+/.exec(message)?.[0] ?? code;
    }
  };
  const forEntra = (account = "app") => token("api://AzureADTokenExchange", account);
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
    await clients.storage.storageAccounts.beginCreateAndWait(
      ...(["shop", "shopblobs"] as const),
      { location, kind: "StorageV2", sku: { name: "Standard_ZRS" } },
      soon,
    );
    await clients.storage.blobContainers.create("shop", "shopblobs", "orders", {});
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

  it("have tokens by which Entra lets them in as their identity, and those of before stay valid", async () => {
    asPlanned(await cloud.stack.up());

    const jwt = await forEntra();
    const app = (await clientOf("app"))!;
    expect(await finds(jwt, app)).toBe(0);
    expect(await isAdmitted(oldToken)).toBe(true);
    expect(await isAdmitted(await token(claimsOf(jwt).iss))).toBe(true);
    // No federated credential of the identity names it, and the identity that knows it has no role there.
    expect(await finds(await forEntra("other"), app)).toBe("AADSTS700213");
    expect(await finds(await forEntra("billing"), (await clientOf("billing"))!)).toBe(
      "AuthorizationPermissionMismatch",
    );
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
    unchanged(await cloud.stack.up("--skip-preview"));
    succeeded(await cloud.stack.refresh());
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("get another one beside them without a moment in which pods of theirs get no token", async () => {
    const clientIds = async () => {
      const [found] = await cloud.get<{ metadata: { uid: string }; data: Record<string, string> }>(
        "configmaps",
        ...["--namespace", "kube-system"],
        ...["--field-selector", "metadata.name=zoned-workload-identity"],
      );
      return found!;
    };
    const { metadata } = await clientIds();
    await cloud.stack.configure({ ...settings, workloadIdentities: more });

    asPlanned(await cloud.stack.up());

    const { data, metadata: after } = await clientIds();
    expect(Object.keys(data).sort()).toEqual(["shop.app", "shop.billing", "shop.other"]);
    // Policies admit pods as they are while there is none; another one would have another id.
    expect(after.uid).toBe(metadata.uid);
  });

  it("are let in by tokens of both keys while the key of service accounts changes", async () => {
    await cloud.stack.configure({
      ...settings,
      workloadIdentities: more,
      serviceAccountKeyGeneration: 2,
    });
    const app = (await clientOf("app"))!;
    const first = await forEntra();

    asPlanned(await cloud.stack.up());
    asPlanned(await cloud.stack.up());

    const second = await forEntra();
    expect(second.split(".")[0]).not.toBe(first.split(".")[0]);
    expect([await finds(first, app), await finds(second, app)]).toEqual([0, 0]);
  });

  it("leave nothing of theirs with others when the cluster is destroyed", async () => {
    succeeded(await cloud.stack.destroy());

    expect(await everyId(clients)).toEqual(before);
  });
});
