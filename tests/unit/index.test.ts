import * as pulumi from "@pulumi/pulumi";

import { subscriptionPath } from "../../tools/local-azure/arm/resources/resource";
import { schemaOf } from "../../tools/local-azure/arm/types/resource-type";
import { typeOfToken } from "../../tools/local-azure/arm/types/types";
import { awaitedBy } from "../support/machines";
import { update, type Update } from "../support/program";
import { type Recorded, valueOf } from "../support/record";

const workloadIdentities = [
  {
    ...{ namespace: "shop", serviceAccount: "app" },
    roles: [
      {
        role: "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1",
        scope: `${subscriptionPath}/resourceGroups/shop`,
      },
    ],
  },
];

let requests: Update["requests"];
beforeAll(async () => {
  ({ requests } = await update({
    caGeneration: 3,
    serviceAccountKeyGeneration: 4,
    workloadIdentities,
  }));
});

const named = (name: string): Recorded => {
  const found = requests.filter((one) => one.name === name);
  if (found.length !== 1) throw new Error(`${found.length} resources are called ${name}`);
  return found[0]!;
};
const steps = (role: "cp" | "workers", ...numbers: number[]): string[] =>
  numbers.map((number) => `zoned-test-${role}-${number}-bootstrap`);

it("says the region of everything that has one, else a stack's azure-native:location would be that", () => {
  const located = requests.filter(({ type }) => {
    const known = typeOfToken(type);
    return known !== undefined && schemaOf(known).inputs.includes("location");
  });

  expect(located.length).toBeGreaterThan(10);
  for (const { name, inputs } of located) {
    expect([name, inputs["location"]]).toEqual([name, "southeastasia"]);
  }
});

it("protects the resource group and the keys as the settings say, marks whose it is, and deletes it before the roles", async () => {
  const group = named("cluster");

  expect([group.opts.protect, named("pki").opts.protect]).toEqual([true, true]);
  expect(group.inputs["tags"]).toEqual({ "zoned-stack": "organization/zoned/test" });
  expect(await awaitedBy(group)).toEqual(["identity"]);
});

it.each<[string, string, string[]]>([
  [
    "the end, which sees all pods ready, waits for every machine",
    "roll-out",
    [...steps("cp", 1, 2, 3), ...steps("workers", 1, 2, 3)],
  ],
  [
    "the cloud provider waits for the first two control planes",
    "cloud-controller-manager-account",
    steps("cp", 1, 2),
  ],
  [
    "rights wait for a machine, as long as a new identity takes",
    "identity-zones",
    ["zoned-test-cp-1-vm"],
  ],
  [
    "rights of pods wait for a machine too",
    "workload-identities-shop_app-identity-role-aef7ee39",
    ["zoned-test-cp-1-vm"],
  ],
  [
    "control planes leave one after another, the highest number first",
    "zoned-test-cp-3-membership",
    ["zoned-test-cp-1-membership", "zoned-test-cp-2-membership"],
  ],
  [
    "a control plane joins when the pod network is there",
    "zoned-test-cp-2-bootstrap",
    ["node-add-ons"],
  ],
  [
    "a worker joins when the pod network is there",
    "zoned-test-workers-1-bootstrap",
    ["node-add-ons"],
  ],
])("%s", async (_, name, awaited) => {
  expect(await awaitedBy(named(name))).toEqual(expect.arrayContaining(awaited));
});

it("ends without the spot machines that it makes, which Azure may have no capacity for, and waits for those that stay", async () => {
  const pools = ["workers", "batch"].map((name) => ({ name, count: 1 }));
  const spot = { evictionPolicy: "Delete" };
  const workerPools = [pools[0], { ...pools[1], spot }];
  const first = await update({ workerPools });
  const second = await update({ workerPools }, first);

  const awaited = async (made: Update) => {
    const end = made.requests.find(({ name }) => name === "roll-out")!;
    return (await awaitedBy(end)).filter((name) => /-(workers|batch)-/.test(name));
  };
  expect(await awaited(first)).toEqual(["zoned-test-workers-1-bootstrap"]);
  expect((await awaited(second)).sort()).toEqual([
    "zoned-test-batch-1-bootstrap",
    "zoned-test-workers-1-bootstrap",
  ]);
});

it("applies every object by the provider of this cluster, with which it goes", () => {
  const objects = requests.filter(({ type }) => type.startsWith("kubernetes:"));

  const provider = named("kubernetes").resource;
  expect(objects.length).toBeGreaterThan(20);
  for (const { name, type, opts, resource } of objects) {
    const isOurs = resource?.getProvider(type) === provider && opts.deletedWith === provider;
    expect([name, isOurs]).toEqual([name, true]);
  }
});

it("makes the CAs that the plan has", () => {
  expect(named("pki-cluster-ca-3").type).toBe("tls:index/selfSignedCert:SelfSignedCert");
});

it("makes the key of service accounts that the plan has", () => {
  expect(named("pki-service-account-4-key").type).toBe("tls:index/privateKey:PrivateKey");
});

it("has every refusal of Azure's explained", () => {
  const inAzure = requests.filter(({ type }) => type.startsWith("azure-native:"));

  expect(inAzure.length).toBeGreaterThan(20);
  for (const { name, opts } of inAzure)
    expect([name, opts.hooks?.onError]).toEqual([name, [expect.anything()]]);
});

describe("in a resource group that exists already", () => {
  let made: Update;
  beforeAll(async () => {
    made = await update({ resourceGroup: "platform" });
  });
  const inAzure = () => made.requests.filter(({ type }) => type.startsWith("azure-native:"));
  const one = (name: string) => made.requests.find((request) => request.name === name)!;

  it("makes all in that group, and no group", () => {
    const groups = inAzure().flatMap(({ inputs }) => inputs["resourceGroupName"] ?? []);

    expect(groups.length).toBeGreaterThan(20);
    expect(new Set(groups)).toEqual(new Set(["platform"]));
    expect(inAzure().filter(({ type }) => type.endsWith(":ResourceGroup"))).toEqual([]);
    expect(made.outputs["resourceGroup"]).toBe("platform");
  });

  it("deletes each resource by itself, but for a machine's step, which goes with the machine", () => {
    const unasked = ({ opts }: Recorded) => opts.deletedWith !== undefined || opts.retainOnDelete;
    const together = inAzure().filter(unasked);

    expect(together.length).toBeGreaterThan(3);
    expect(together.filter(({ name }) => !name.endsWith("-bootstrap"))).toEqual([]);
  });

  it("lets memberships go with the API's balancer, without a drain", () => {
    const members = made.requests.filter(({ type }) => /\/zoned:(Membership|Drain)$/.test(type));

    expect(members.length).toBeGreaterThan(6);
    for (const { name, opts } of members) {
      expect([name, opts.deletedWith === one("api-lb").resource]).toEqual([name, true]);
    }
  });

  it("has the stack's tag on what takes tags", async () => {
    const { tags } = one("network-vnet").inputs as { tags: pulumi.Output<object> };

    expect(await valueOf(pulumi.output(tags))).toEqual({
      "zoned-stack": expect.stringMatching(/^\w+\/\w+\/\w+$/),
    });
  });
});
