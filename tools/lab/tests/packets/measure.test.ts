import type { Measurement } from "../../packets/measure/lab-task";
import { csvOf, measuredIn, pageOf, ratiosOf } from "../../packets/measure/page";
import { saidIn } from "../../packets/measure/virtual-machine";

const measurement = (mode: Measurement["mode"], services: number, firstSyncSeconds: number) =>
  ({
    ...{ mode, services, endpoints: 6, rules: 20 * services + 28, endpointRules: 12 * services },
    ...{
      chains: 97,
      sets: 8,
      members: 23,
      destinations: 60,
      firstSyncSeconds,
      firstCpuSeconds: 0.25,
    },
    ...{ changeSeconds: 0.02, worstChangeSeconds: 0.026, changeCpuSeconds: 0.016 },
  }) satisfies Measurement;

const machine = ["kube-proxy v1.36.3", "Linux 6.12"];
const all = [
  measurement("iptables", 10, 0.5),
  measurement("ipvs", 10, 1.5),
  measurement("iptables", 100, 2),
];

test("a CSV has all of a measurement, and on which machine of which place it was", () => {
  const host = { machine: ["Linux 6.18"], all: [measurement("nftables", 5000, 5.5)] };
  for (const measured of [{ host, virtualMachine: { machine, all } }, { host }]) {
    expect(measuredIn("a.csv", csvOf(measured))).toEqual(measured);
  }
});

test("a CSV of other columns is refused by its name", () => {
  const older = "mode,services,rules\niptables,10,228\n";
  expect(() => measuredIn("docs/a.csv", older)).toThrow(/docs\/a\.csv.*got mode,services,rules/);
});

test("an emulated time is a multiple of what iptables took for as many Services", () => {
  const row = ratiosOf(all)
    .split("\n")
    .find((line) => line.startsWith("| ipvs"));
  expect(row).toMatch(/\| +3\.00 \| +1\.00 \|/);
});

test("the page keeps the host's figures when only the virtual machine's are new", () => {
  const host = { machine: ["Linux 6.18"], all: [measurement("nftables", 5000, 5.5)] };
  const page = pageOf({ host, virtualMachine: { machine, all } });
  expect(page).toMatch(/## On a host\n\n- Linux 6\.18\n\n.*first sync, s/s);
  expect(page).toMatch(/- Linux 6\.12\n.*first sync, ×/s);
  expect(page).toContain("- iptables: 20 rules, 12 of them in chains of single endpoints");
});

describe("a console's line", () => {
  test("tells what the measurement is at, also behind the kernel's own words", () => {
    const line = '[  12.3] random: crng init done{"progress":"network"}';
    expect(saidIn(line)).toEqual({ progress: "network" });
  });

  test("may be the kernel's alone", () => {
    expect(saidIn("[  12.3] IPVS: [rr] scheduler registered.")).toBeUndefined();
  });
});
