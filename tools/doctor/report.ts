import type { Check } from "./check";
import type { Report } from "./doctor";

const markOf = ({ problems, notAsked }: Check): string =>
  notAsked !== undefined ? "-" : problems.length === 0 ? "✓" : "✗";

/** A line per check that has passed, and a line per problem of one that has not. */
export const checkLines = ({ checks }: Report): string[] =>
  checks.flatMap((check) => {
    const { name, saw, problems, notAsked } = check;
    const head = `${markOf(check)} ${name}: `;
    if (notAsked !== undefined) return [`${head}not asked, ${notAsked}`];
    if (problems.length === 0) return [`${head}${saw}`];
    return problems.map(
      (problem) =>
        `${head}${problem.machine === undefined ? "" : `${problem.machine}: `}${problem.saw} → ${problem.fix}`,
    );
  });

/** Names of the machines that some problem is about. */
const sickIn = ({ checks }: Report): ReadonlySet<string | undefined> =>
  new Set(checks.flatMap(({ problems }) => problems.map(({ machine }) => machine)));

/** Whether Nodes were asked for: the API may not have let it come to that. */
const knowsMachines = ({ checks }: Report): boolean => checks.some(({ name }) => name === "Nodes");

function machinesByZone(report: Report) {
  const sick = sickIn(report);
  const known = knowsMachines(report);
  const machines = report.machines.map(({ name, role, zone }) => ({
    ...{ name, role, zone },
    passed: known ? !sick.has(name) : null,
  }));
  const zones = [...new Set(machines.map(({ zone }) => zone))].sort();
  return zones.map((zone) => [zone, machines.filter((one) => one.zone === zone)] as const);
}

/** Machines by zone, as a table for a terminal. */
export function zoneLines(report: Report): string[] {
  const zones = machinesByZone(report);
  const width = Math.max(4, ...zones.map(([zone]) => zone.length));
  const mark = (passed: boolean | null) => (passed === null ? "?" : passed ? "✓" : "✗");
  return [
    `${"ZONE".padEnd(width)}  MACHINES`,
    ...zones.map(
      ([zone, machines]) =>
        `${zone.padEnd(width)}  ${machines.map(({ name, passed }) => `${mark(passed)} ${name}`).join("  ")}`,
    ),
  ];
}

/** How many checks have failed, in words; for the last line and for progress. */
export function verdict({ checks, looked, healthy }: Report): string {
  if (healthy) return "healthy";
  if (!looked) return "could not look: the API does not answer";
  const failed = checks.filter((check) => markOf(check) === "✗").map(({ name }) => name);
  return `not healthy: ${failed.join(", ")}`;
}

/** All of it as one document. */
export function asJson(stack: string, report: Report): string {
  const { server, time, looked, healthy, checks } = report;
  return JSON.stringify(
    {
      ...{ stack, server, time, looked, healthy },
      checks: checks.map(({ name, saw, problems, notAsked }) => ({
        name,
        passed: notAsked === undefined ? problems.length === 0 : null,
        saw: notAsked ?? saw,
        problems,
      })),
      zones: Object.fromEntries(
        machinesByZone(report).map(([zone, machines]) => [
          zone,
          machines.map(({ name, role, passed }) => ({ name, role, passed })),
        ]),
      ),
    },
    null,
    2,
  );
}
