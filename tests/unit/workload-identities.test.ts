import { generateKeyPairSync } from "node:crypto";

import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { Identity } from "../../components/identity";
import { keysDocument } from "../../components/token-issuer";
import { WorkloadIdentities } from "../../components/workload-identities";
import { dependenciesOf, Recorder, valueOf } from "../support/record";
import { subscriptionId, validSettings } from "../support/sample";

const shop = `/subscriptions/${subscriptionId}/resourceGroups/shop`;
const identityId = `${shop}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/Billing`;
const reader = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1";
const app = { namespace: "shop", serviceAccount: "app", identityId: "" };
const declared = [
  { ...app, roles: [{ role: reader, scope: shop }] },
  ...["billing", "jobs"].map((serviceAccount) => ({
    ...{ namespace: "shop", serviceAccount, identityId, roles: [] },
  })),
];

const identity = {
  credential: { clientId: pulumi.output("the-cluster") },
  place: { resourceGroupName: "zoned-test", resourceName: "zoned-test", isOwn: true },
};

async function build(
  workloadIdentities = declared,
  machineIdentity = true,
  container?: string,
  existingIdentityId?: string,
) {
  const recorder = await Recorder.start({
    filledIn: {
      "azure-native:managedidentity:UserAssignedIdentity": {
        ...{ principalId: "the-principal", clientId: "the-client" },
      },
      "azure-native:storage:Blob": ({ inputs }) => ({ url: `https://blobs/${inputs.blobName}` }),
    },
  });
  const own = new ResourceGroup("cluster", { resourceGroupName: "zoned-test" });
  const machine = new pulumi.ComponentResource("test:index:Machine", "machine");
  const shared = {
    resourceGroup: { name: own.name, id: own.id, own },
    shown: new Map(),
    subscriptionId,
  };
  const theirs = existingIdentityId !== undefined && {
    settings: { ...validSettings, identityId: existingIdentityId },
    existingIdentity: { clientId: "theirs", principalId: "theirs" },
  };
  const identities = new WorkloadIdentities(
    "workload-identities",
    {
      ...shared,
      settings: {
        ...{ ...validSettings, workloadIdentities, machineIdentity },
        etcdBackups: { container, every: "1h" },
      },
      identity: theirs ? new Identity("identity", { ...shared, ...theirs }) : identity,
      certificates: {
        serviceAccount: { key: pulumi.secret(""), trusted: pulumi.output("") },
      },
      workloadClients: new Map([[identityId.toLowerCase(), "billing-client"]]),
      after: machine,
    },
    { transformations: [recorder.watch] },
  );
  const credentials = await recorder.of("azure-native:managedidentity:FederatedIdentityCredential");
  return { recorder, own, identities, credentials, machine };
}

it("writes one credential after another, since Azure refuses two of one identity at a time", async () => {
  const { credentials, own } = await build();

  const [first, second, third] = credentials;
  expect(credentials.map(({ inputs }) => [inputs.resourceGroupName, inputs.resourceName])).toEqual([
    ["zoned-test", expect.stringContaining("app")],
    ["shop", "Billing"],
    ["shop", "Billing"],
  ]);
  // An identity of others stays when the cluster's group goes.
  expect(credentials.map(({ opts }) => opts.deletedWith === own)).toEqual([true, false, false]);
  expect(await dependenciesOf(second!)).toContain(first!.resource);
  expect(await dependenciesOf(third!)).toContain(second!.resource);
});

it("knows the client of each that is declared, made or given, and has none of the cluster's own injected", async () => {
  const { identities } = await build(declared, false);
  const { clients } = identities;

  expect(Object.keys(clients)).toEqual(["shop.app", "shop.billing", "shop.jobs"]);
  expect(await Promise.all(Object.values(clients).map(valueOf))).toEqual([
    ...["the-client", "billing-client", "billing-client"],
  ]);
});

it.each<[string, string | undefined, string[]]>([
  ["the cluster's own pods", undefined, []],
  ["who writes snapshots to a container besides", "/a/container", ["zoned-etcd-snapshot"]],
])(
  "has Entra take %s for its identity where machines do not carry it",
  async (_, container, more) => {
    const { credentials } = await build([], false, container);

    expect(
      credentials.map(({ inputs }) => [
        ...[inputs.resourceGroupName, inputs.resourceName, inputs.subject],
      ]),
    ).toEqual(
      ["cloud-controller-manager", "csi-azuredisk-controller-sa", ...more].map((account) => [
        ...["zoned-test", "zoned-test", `system:serviceaccount:kube-system:${account}`],
      ]),
    );
    expect(await dependenciesOf(credentials[1]!)).toContain(credentials[0]!.resource);
  },
);

it("leaves an identity of others when the cluster's group goes, and takes its credentials off it", async () => {
  const { credentials, own } = await build([], false, undefined, identityId);

  expect(
    credentials.map(({ inputs, opts }) => [
      ...[inputs.resourceGroupName, inputs.resourceName, opts.deletedWith === own],
    ]),
  ).toEqual(Array(2).fill(["shop", "Billing", false]));
});

it("has Entra take tokens of the audience that pods ask for", async () => {
  const { credentials } = await build();

  for (const { inputs } of credentials)
    expect(inputs.audiences).toEqual(["api://AzureADTokenExchange"]);
});

const managementGroup = "/providers/Microsoft.Management/managementGroups/all";

it.each([
  ["of the scope's", "/subscriptions/other/resourceGroups/shop", "/subscriptions/other"],
  ["of the cluster's, where it has none,", managementGroup, `/subscriptions/${subscriptionId}`],
])("names a built-in role as one %s subscription, as Azure shows it", async (_, scope, of) => {
  const { recorder } = await build([{ ...app, roles: [{ role: reader, scope }] }]);

  const { inputs, opts } = await recorder.only("azure-native:authorization:RoleAssignment");
  const roles = `${of}/providers/Microsoft.Authorization/roleDefinitions`;
  expect(inputs.roleDefinitionId).toBe(`${roles}/${reader}`);
  // By its other id, Azure has it already.
  expect((opts as pulumi.CustomResourceOptions).deleteBeforeReplace).toBe(true);
});

it("gives roles to what it has made alone, and when a machine has been made, since Azure knows no new identity at once", async () => {
  const { recorder, machine } = await build();

  const assignment = await recorder.only("azure-native:authorization:RoleAssignment");
  expect(assignment.inputs).toMatchObject({
    ...{ principalId: "the-principal", principalType: "ServicePrincipal", scope: shop },
    roleDefinitionId: expect.stringContaining(reader),
  });
  expect(await dependenciesOf(assignment)).toContain(machine);
});

it("calls an assignment by what it gives, so that the role before it can go", async () => {
  const other = { role: reader, scope: `${shop}-other` };
  const namesOf = async (roles: (typeof other)[]) => {
    const { recorder } = await build([{ ...app, roles }]);
    const assignments = await recorder.of("azure-native:authorization:RoleAssignment");
    return assignments.map(({ name }) => name);
  };
  const [first, second] = await namesOf([{ role: reader, scope: shop }, other]);

  expect(first).not.toBe(second);
  expect(await namesOf([other])).toEqual([second]);
  expect(await namesOf([{ role: reader.toUpperCase(), scope: other.scope.toUpperCase() }])).toEqual(
    [second],
  );
});

it("tells service accounts apart whose names are alike together with their namespaces'", async () => {
  const roles = [{ role: reader, scope: shop }];
  const { recorder } = await build([
    { ...app, namespace: "team", serviceAccount: "a-app", roles },
    { ...app, namespace: "team-a", serviceAccount: "app", roles },
  ]);

  const identities = await recorder.of("azure-native:managedidentity:UserAssignedIdentity");
  expect(identities).toHaveLength(2);
});

it("lets anybody read the issuer's documents, as what they are, and list none", async () => {
  const { recorder } = await build();

  const { inputs: account } = await recorder.only("azure-native:storage:StorageAccount");
  const container = await recorder.only("azure-native:storage:BlobContainer");
  const blobs = await recorder.of("azure-native:storage:Blob");
  expect(container.inputs.publicAccess).toBe("Blob");
  // Anybody may, but by no connection that a landing zone's policies refuse.
  expect(account).toMatchObject({
    ...{ allowBlobPublicAccess: true, allowSharedKeyAccess: true },
    allowCrossTenantReplication: false,
    ...{ enableHttpsTrafficOnly: true, minimumTlsVersion: "TLS1_2" },
  });
  expect(blobs.map(({ inputs }) => [inputs.blobName, inputs.contentType]).sort()).toEqual([
    [".well-known/openid-configuration", "application/json"],
    ["openid/v1/jwks", "application/json"],
  ]);
});

it("knows the issuer's documents as published once Azure has both, and none where there is no issuer", async () => {
  const some = await build();
  const none = await build([]);

  expect(await valueOf(some.identities.published)).toEqual([
    "https://blobs/.well-known/openid-configuration",
    "https://blobs/openid/v1/jwks",
  ]);
  expect(await valueOf(none.identities.published)).toEqual([]);
});

it("keeps the document of keys as it is when another one of them signs, since another text is another blob", () => {
  const [one, other] = [1, 2].map(() =>
    generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({
      ...{ type: "spki", format: "pem" },
    }),
  ) as [string, string];

  expect(keysDocument(`${one}${other}`)).toBe(keysDocument(`${other}${one}`));
  expect(JSON.parse(keysDocument(`${one}${other}`)).keys).toHaveLength(2);
});

it("makes nothing where no service account is declared", async () => {
  const { recorder } = await build([]);

  const made = (await recorder.all()).map(({ type }) => type);
  expect(
    made.filter((type) => /azure-native:(storage|managedidentity|authorization)/.test(type)),
  ).toEqual([]);
});
