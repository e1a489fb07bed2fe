import { Problem, wants } from "../problem";
import { Settings, weekdays } from "../settings";

const minutesOf = (time: string): number => {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(time) ?? [];
  return Number(hours) * 60 + Number(minutes);
};

/** What is wrong with when machines may be rebooted. */
export function rebootProblems({ reboots }: Settings): Problem[] {
  if (reboots === undefined) return [];
  const { days, from, to } = reboots;
  const [begin, end] = [minutesOf(from), minutesOf(to)];
  const clock = "a time of day in UTC, as 24 hours and minutes";
  const problems: (Problem | false)[] = [
    days.length === 0 &&
      wants("reboots.days[0]", undefined, "a day beside from and to, such as tue", "tue"),
    ...days.map(
      (day, index) =>
        !(weekdays as readonly string[]).includes(day) &&
        wants(`reboots.days[${index}]`, day, `one of ${weekdays.join(", ")}`, "tue"),
    ),
    Number.isNaN(begin) && wants("reboots.from", from, clock, "02:00"),
    Number.isNaN(end) && wants("reboots.to", to, clock, "05:00"),
    // Not so where one of them is no time.
    end - begin < 60 &&
      wants(
        "reboots.from",
        from,
        `at least an hour before ${to} on the same day, since each machine takes some minutes and the next one waits`,
        timeOf(Math.max(0, end - 60)),
      ),
  ];
  return problems.filter((problem) => problem !== false);
}

const timeOf = (minutes: number): string =>
  [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, "0")).join(":");
