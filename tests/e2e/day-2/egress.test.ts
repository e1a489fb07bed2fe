import { ResourceGroup } from "@pulumi/azure-native/resources";
import { LocalWorkspace, Stack } from "@pulumi/pulumi/automation";

import { Network } from "../../../components/network";
import { validSettings } from "../../support/sample";
import { LocalCloud } from "../../../tools/lab/local-cloud";

type Egress = typeof validSettings.egress;

/** A cluster's network alone, whose egress changes. */
describe("a change of the egress", () => {
  let cloud: LocalCloud;
  let stack: Stack;
  let egress: Egress;

  const up = (wanted: Egress) => {
    egress = wanted;
    return stack.up();
  };

  beforeAll(async () => {
    cloud = await LocalCloud.start("local");
    process.env["PATH"] = cloud.environment()["PATH"];
    stack = await LocalWorkspace.createOrSelectStack(
      {
        stackName: "egress",
        projectName: "egress",
        program: async () => {
          const settings = { ...validSettings, clusterName: "zoned-local", egress };
          const resourceGroup = new ResourceGroup("cluster", {
            resourceGroupName: settings.clusterName,
            location: settings.location,
          });
          new Network("network", { resourceGroup, settings, shown: new Map() });
        },
      },
      { envVars: cloud.environment() },
    );
    await up("zonal");
  });
  afterAll(() => cloud?.stop());

  /** What it wrote to subnets and rules, in order, as `PUT nodes-1`. */
  async function writesOf(change: () => Promise<unknown>): Promise<string[]> {
    const before = (await cloud.requests()).length;
    await change();
    return (await cloud.requests())
      .slice(before)
      .filter(({ method, type, status }) => {
        const isOfChain = /\/(subnets|securityRules)$/i.test(type);
        return ["PUT", "DELETE"].includes(method) && isOfChain && status < 300;
      })
      .map(({ method, id }) => `${method} ${id.split("/").at(-1)!.replace(rule, "from")}`);
  }

  /** Subnets whose machines the API's security group does not admit by their gateway's address. */
  async function shutOut(): Promise<string[]> {
    const list = async (path: string) =>
      ((await cloud.inGroup("GET", `/providers/Microsoft.Network/${path}`)) as { value: any[] })
        .value;
    const [rules, subnets, gateways, addresses] = await Promise.all([
      list("networkSecurityGroups/zoned-local-nsg/securityRules"),
      list("virtualNetworks/zoned-local-vnet/subnets"),
      list("natGateways"),
      list("publicIPAddresses"),
    ]);
    const admitted = rules
      .filter(({ name }) => name.startsWith(rule))
      .flatMap(({ properties }) => properties.sourceAddressPrefixes);
    const find = (all: any[], ref: { id: string }) => all.find(({ id }) => id === ref.id);
    return subnets
      .filter(({ properties: { natGateway } }) => {
        if (natGateway === undefined) return false;
        const [ref] = find(gateways, natGateway).properties.publicIpAddresses;
        return !admitted.includes(find(addresses, ref).properties.ipAddress);
      })
      .map(({ name }) => name);
  }

  const rule = "nodes-reach-the-api-through-their-egress";
  const subnets = ["PUT nodes-1", "PUT nodes-2", "PUT nodes-3"];

  it("admits the new gateway before a subnet leaves by it, and forgets the old ones at the end", async () => {
    expect(await writesOf(() => up("single"))).toEqual([
      "PUT from",
      ...subnets,
      ...["DELETE from-3", "DELETE from-2", "DELETE from-1"],
    ]);
    expect(await writesOf(() => up("zonal"))).toEqual([
      ...["PUT from-1", "PUT from-2", "PUT from-3"],
      ...subnets,
      "DELETE from",
    ]);
    expect(await shutOut()).toEqual([]);
  });

  it.each([
    { goes: "on", from: "zonal", to: "single", next: "single" },
    { goes: "back", from: "single", to: "zonal", next: "single" },
  ] as const)(
    "admits every subnet where it has stopped half-way to $to, and goes $goes from there",
    async ({ from, to, next }) => {
      expect(egress).toBe(from);
      await cloud.fault({ method: "PUT", id: "subnets/nodes-2$", code: "Boom" });

      const stopped = await writesOf(() => expect(up(to)).rejects.toThrow("Boom"));

      expect(stopped.filter((write) => /nodes|DELETE/.test(write))).toEqual(["PUT nodes-1"]);
      expect(await shutOut()).toEqual([]);
      await cloud.clearFaults();
      await up(next);
      expect(await shutOut()).toEqual([]);
    },
  );
});
