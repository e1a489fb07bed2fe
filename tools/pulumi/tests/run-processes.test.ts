import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";

import { checkout } from "../../shared/checkout";
import { identityOf, isAlive } from "../../shared/pids";
import { endRunsIn, environmentOfRun, following } from "../run-processes";

const state = `/nowhere/${process.pid} ü x`;
const run = `${state}/up-1-1`;

function start() {
  const env = { ...process.env, ...environmentOfRun(run) };
  const { pid } = spawn("sleep", ["60"], { stdio: "ignore", detached: true, env });
  return identityOf(pid!);
}

test("what a run has left ends with it, also when it failed", async () => {
  let left;
  const ending = following(run, async () => {
    left = start();
    throw new Error("the engine was killed");
  });

  await expect(ending).rejects.toThrow("the engine was killed");
  expect(isAlive(left!)).toBe(false);
});

test("a run that this process waits for is no leftover", async () => {
  await following(run, async () => {
    const one = start();
    await endRunsIn(state);
    expect(isAlive(one)).toBe(true);
  });
});

test("a program ends when its engine was killed, however busy it is", async () => {
  const preload = JSON.stringify(`${checkout}/tools/pulumi/end-with-engine.cjs`);
  const program = "process.stdout.write(String(process.pid)); for (;;);";
  const engine = spawn("sh", ["-c", `"$0" -e "$1" & wait`, process.execPath, program], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_OPTIONS: `--require ${preload}` },
  });
  const [pid] = await once(engine.stdout.setEncoding("utf8"), "data");
  const busy = identityOf(Number(pid));
  expect(isAlive(busy)).toBe(true);

  engine.kill("SIGKILL");

  while (isAlive(busy)) await wait(50);
});
