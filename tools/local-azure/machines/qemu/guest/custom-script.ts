import { setTimeout as wait } from "node:timers/promises";

import type { ScriptResult } from "../../machines";
import type { Agent } from "./agent";

/** Where Azure's agent keeps a custom script. */
const folder = "/var/lib/waagent/custom-script/download/0";
const unit = "zoned-custom-script.scope";
const log = "/var/log/zoned.log";

/** Azure ends a script after this, and reports it as failed. */
const longestMs = 90 * 60_000;
const keptBytes = 4096;
/** The agent writes each look to the journal, which an emulated processor notices. */
const lookEvery = 3_000;
const looksPerStep = 4;

/** The step that a machine's log says has begun last, with the half it belongs to. */
const stepIn = (text: string): string | undefined =>
  [...text.matchAll(/(first boot|bootstrap): (.+): begins$/gm)]
    .map(([, half, step]) => `${half}: ${step}`)
    .at(-1);

/** What begins or has ended now on a machine, by its log. */
const currentStep = (agent: Agent): Promise<string | undefined> =>
  agent.tail(log, keptBytes).then(stepIn, () => undefined);

async function must(agent: Agent, path: string, ...args: string[]): Promise<string> {
  const { exitCode, stdout } = await agent.run(path, ...args);
  if (exitCode !== 0) throw new Error(`${path} ${args.join(" ")} ended with ${exitCode} on it`);
  return stdout;
}

/**
 * Runs a script as Azure's agent does: as root, from a file that only root reads, in a unit of its
 * own.
 *
 * @param onStep called with the step that is under way
 */
export async function runCustomScript(
  agent: Agent,
  script: string,
  onStep: (step: string) => void,
): Promise<ScriptResult> {
  // What is stopped is one that an earlier local Azure began and did not see end.
  const prepare = `systemctl stop ${unit}; install -d -m 0700 ${folder}`;
  await must(agent, "/bin/sh", "-c", `${prepare} && install -m 0700 /dev/null ${folder}/script.sh`);
  await agent.write(`${folder}/script.sh`, script);
  // A scope and not a service, whose end systemd would be asked for by its bus, and report every
  // other unit too.
  const pid = await agent.start(
    ...["/bin/sh", "-c"],
    `cd ${folder} && exec systemd-run --quiet --scope --collect --unit=${unit} ./script.sh >stdout 2>stderr`,
  );
  const until = Date.now() + longestMs;
  let ended = await agent.ended(pid);
  for (let looks = 1; ended === undefined; looks += 1) {
    if (Date.now() > until) {
      await agent.run("/usr/bin/systemctl", "stop", unit);
      ended = { exitCode: 124, stdout: "" };
      break;
    }
    await wait(lookEvery);
    const step = looks % looksPerStep === 0 ? await currentStep(agent) : undefined;
    if (step !== undefined) onStep(step);
    ended = await agent.ended(pid);
  }
  const [stdout, stderr] = await Promise.all(
    ["stdout", "stderr"].map((name) => agent.tail(`${folder}/${name}`, keptBytes).catch(() => "")),
  );
  return { exitCode: ended.exitCode, stdout: stdout ?? "", stderr: stderr ?? "" };
}
