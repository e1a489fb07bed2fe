import { interfaceAddresses } from "../../../components/azure/free-addresses";
import { shownAs } from "../../../components/azure/shown";
import { stackName } from "../../../components/azure/stack-tag";
import { addressProblems } from "../../../components/plan/addresses";
import { machinesOf } from "../../../components/settings/topology";
import { Settings } from "../../../components/settings/settings";
import { Recorder } from "../../support/record";
import { pool, validSettings } from "../../support/sample";

const two = [
  { ...pool, name: "one", count: 2 },
  { ...pool, name: "two", count: 2 },
];
const settings = { ...validSettings, workerPools: two };
const labelled = machinesOf(settings).map((one) => ({ ...one, zone: `westeurope-${one.zone}` }));
const problem = (change: Partial<Settings>) =>
  addressProblems(machinesOf({ ...settings, ...change }), [], labelled, settings).join();

it.each<[string, Partial<Settings>]>([
  ["other counts", { controlPlaneCount: 5, workerPools: [{ ...two[0]!, count: 3 }, two[1]!] }],
  ["fewer", { controlPlaneCount: 1, workerPools: [{ ...two[0]!, count: 0 }, two[1]!] }],
  ["a pool at the end", { workerPools: [...two, { ...pool, name: "three" }] }],
  ["without the last pool", { workerPools: two.slice(0, 1) }],
])("lets machines be where they are: %s", (_, change) => {
  expect(problem(change)).toBe("");
});

it.each<[string, Partial<Settings>, RegExp[]]>([
  [
    "control planes to other zones, whose etcd would be elsewhere at once",
    { zones: ["2", "1", "3"], workerPools: [] },
    [/test-cp-1 would move from 172\.16\.1\.4 to 172\.16\.2\.4/, /test-cp-2 would move from/],
  ],
  [
    "workers to other zones of their pool",
    { workerPools: [{ ...two[0]!, zones: ["1", "3", "2"] }, two[1]!] },
    [/test-one-1 would move from 172\.16\.2\.16 to 172\.16\.3\.16/],
  ],
  [
    "the workers of a pool in whose place another one is removed",
    { workerPools: two.slice(1) },
    [/test-two-1 would move from .*workerPools\[0\]\.count' 0/],
  ],
  [
    "a renamed pool's workers to addresses that are taken until the end",
    { workerPools: [{ ...two[0]!, name: "other" }, two[1]!] },
    [/test-other-1 would get 172\.16\.2\.16, which zoned-test-one-1 has/],
  ],
])("moves no machine: refuses %s", (_, change, says) => {
  for (const text of says) expect(problem(change)).toMatch(text);
});

it("knows no address of a living cluster twice, and lets machines move while there is none", () => {
  const [machine] = machinesOf(settings);
  const elsewhere = [{ name: machine!.name, address: "172.16.1.99" }];
  const where = { name: machine!.name, address: machine!.address };

  expect(addressProblems([machine!], elsewhere, [where], settings)).toEqual([]);
  expect(addressProblems([machine!], elsewhere, undefined, settings)).toEqual([]);
  expect(addressProblems([machine!], elsewhere, [], settings).join()).toMatch(/would move from/);
});

it("moves no machine whose address stays to another zone, as in subnets of others", () => {
  const [machine] = machinesOf(settings).map((one) => ({ ...one, address: "10.1.1.14" }));
  const before = { name: machine!.name, address: "10.1.1.14" };
  const problemIn = (zone?: string) =>
    addressProblems([machine!], [], [{ ...before, zone }], settings).join();

  expect(problemIn(`westeurope-${machine!.zone}`)).toBe("");
  expect(problemIn()).toBe("");
  expect(problemIn("westeurope-3")).toMatch(
    /^.*test-cp-1, which is at 10\.1\.1\.14, would move from westeurope-3 to westeurope-1/,
  );
});

it("leaves interfaces of others alone that lie in the same group", async () => {
  await Recorder.start();
  const interfaceOf = (stack: string, machine: string) => ({
    ...{ name: `zoned-test-${machine}-nic`, tags: { "zoned-stack": stack } },
    properties: { ipConfigurations: [{ properties: { privateIPAddress: "172.16.1.4" } }] },
  });
  const shown = new Map(
    [interfaceOf(stackName(), "one-1"), interfaceOf("organization/others/prod", "two-1")].map(
      (one) => [shownAs("azure-native:network:NetworkInterface", one.name), one],
    ),
  );
  const namesIn = (resourceGroup: string) =>
    interfaceAddresses(shown, { clusterName: "zoned-test", resourceGroup }).map(({ name }) => name);

  expect(namesIn("shared")).toEqual(["zoned-test-one-1"]);
  expect(namesIn("")).toEqual(["zoned-test-one-1", "zoned-test-two-1"]);
});
