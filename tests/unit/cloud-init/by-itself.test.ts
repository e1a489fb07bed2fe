import { cloudInitText } from "../../../components/machine/cloud-init-files";
import { FakeMachine } from "../../support/fake-machine";
import { run } from "../../support/tools";

describe("what a machine does by itself", () => {
  it("begins at every boot, and again whenever it has ended", () => {
    expect(cloudInitText("units/zoned-maintenance.service")).toMatch(
      / maintain\nRestart=always\nRestartSec=10\n\n\[Install\]\nWantedBy=multi-user\.target\n/,
    );
  });

  it("looks for sick workers once a minute, and gives Azure the two minutes that its first answer about events may take", async () => {
    const machine = new FakeMachine({
      curl: "exit 7",
      // Of five seconds each, for two minutes.
      sleep: 'echo >>"$root/slept"; (($(wc -l <"$root/slept") < 24))',
      kubectl: "",
    });
    machine.ship("bootstrap.sh", "/opt/zoned/bootstrap.sh");
    machine.write("/var/lib/zoned/variables", "machine=it role=control-plane\n");
    machine.write("/opt/zoned/repair.env", "");
    machine.write("/run/it", "");

    await machine.run("/opt/zoned/bootstrap.sh", ["maintain"]);

    const asked = machine.callsOf("curl");
    const repairs = machine.callsOf("kubectl");
    expect(asked.filter((call) => call.includes("maintenance/status"))).toHaveLength(2);
    // Whose etcd does not answer does not lead it.
    expect(repairs).toEqual([]);
    const [, seconds] = /--max-time (\d+) .*scheduledevents/.exec(asked.join("\n"))!;
    expect(Number(seconds)).toBeGreaterThan(120);
  });

  it.each(["first-boot.sh", "generalize.sh", "etcd-snapshot.sh", "bootstrap/runner.sh"])(
    "says in UTC when it did it, whatever the machine's time zone is (%s)",
    async (script) => {
      const [say] = /^say\(\) .*$/m.exec(cloudInitText(script))!;

      const { stdout, stderr } = await run("bash", ["--norc", "-c", `${say}; say it`], {
        TZ: "JST-9",
      });

      const [time] = `${stdout}${stderr}`.split(" ");
      expect(Math.abs(Date.parse(time!) - Date.now())).toBeLessThan(60_000);
    },
  );

  it("has its turn to be down for as long as all restarts of a renewal may take", () => {
    const script = cloudInitText("renew-certificates.sh");
    const [, limit] = /ZONED_LIMIT:-(\d+)/.exec(script)!;
    const [, components] = /^components=\((.*)\)$/m.exec(script)!;
    const [, minutes] = /take_turn renewal (\d+)/.exec(script)!;

    expect(Number(minutes) * 60).toBeGreaterThan(components!.split(" ").length * Number(limit));
  });
});
