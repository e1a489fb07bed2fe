import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { renewalFiles } from "../../../components/machine/renewal";
import { checkout } from "../../../tools/shared/checkout";
import { installed } from "../../support/tools";

const hour = 3_600_000;
const year = 365 * 24 * hour;
const begin = Date.parse("2026-11-26T09:00:00Z");
const end = begin + 3 * year;

/** Hours in which a control plane's timer elapses, if its machine is on, by the clock of systemd. */
function turnsOf(position: number): Set<number> {
  const { content } = renewalFiles(position).find(({ path }) => path.endsWith(".timer"))!;
  const [, calendar] = /OnCalendar=(.+)/.exec(content)!;
  const said = execFileSync(
    installed("systemd-analyze", "systemd"),
    ["calendar", "--base-time=2026-11-26", "--iterations=4000", calendar!],
    { encoding: "utf8", env: { TZ: "UTC" } },
  );
  const times = said.matchAll(/: \w{3} (\d{4}-\d\d-\d\d) (\d\d):00:00 UTC/g);
  return new Set([...times].map(([, date, hours]) => Date.parse(`${date}T${hours}:00:00Z`)));
}

/** With how much time left the script renews. */
const renewsBelow = (() => {
  const script = readFileSync(join(checkout, "cloud-init/renew-certificates.sh"), "utf8");
  return Number(/^least_days=(\d+)$/m.exec(script)![1]) * 24 * hour;
})();

/** A kubelet asks for its next certificate at 90 % of the time of the last one, at the latest. */
const kubeletRenewsBelow = year / 10;

const isWorkingDay = (at: Date) => at.getUTCDay() % 6 !== 0;

it.each<[habit: string, isOn: (at: Date) => boolean]>([
  [
    "from 8 to 18 o'clock on working days",
    (at) => isWorkingDay(at) && at.getUTCHours() >= 8 && at.getUTCHours() < 18,
  ],
  ["for three hours every evening", (at) => at.getUTCHours() >= 19 && at.getUTCHours() < 22],
  ["for three hours around midnight", (at) => [23, 0, 1].includes(at.getUTCHours())],
  ["always", () => true],
])("a cluster that is on %s renews each certificate before it ends, for three years", (_, isOn) => {
  const turns = [0, 1, 2, 3, 4].map(turnsOf);
  const controlPlanes = turns.map(() => begin + year);
  let kubelet = begin + year;
  const ended: string[] = [];

  for (let now = begin; now < end; now += hour) {
    if (!isOn(new Date(now))) continue;
    controlPlanes.forEach((until, position) => {
      if (until <= now)
        ended.push(`control plane ${position + 1} on ${new Date(now).toISOString()}`);
      // A machine that is switched on in this hour is not up at its beginning.
      const isUp = isOn(new Date(now - hour));
      if (isUp && turns[position]!.has(now) && until - now < renewsBelow) {
        controlPlanes[position] = now + year;
      }
    });
    if (kubelet <= now) ended.push(`a kubelet on ${new Date(now).toISOString()}`);
    if (kubelet - now < kubeletRenewsBelow) kubelet = now + year;
  }

  expect(ended).toEqual([]);
});
