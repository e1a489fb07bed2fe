import { changesOf } from "../../rehearsal/machine-steps";

const report = (step: string, power = "running", seconds = 7) => ({
  ...{ name: "cp-1", power, step, seconds, serial: "/serial.log", agent: "/agent" },
});

const seen = (one: ReturnType<typeof report>) => new Map([[one.name, one]]);

test("a step that ended is reported with its machine and its seconds", () => {
  expect(changesOf(seen(report("booting")), [report("first boot: tools")])).toEqual([
    "  cp-1: booting (7 s)",
  ]);
});

test("a machine that died is reported, and one that goes on is not", () => {
  expect(changesOf(seen(report("booting")), [report("booting", "died")])).toEqual(["  cp-1: died"]);
  expect(changesOf(seen(report("booting")), [report("booting")])).toEqual([]);
});
