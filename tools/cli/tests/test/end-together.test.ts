import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";

import { endTogether } from "../../test/end-together";
import { checkout, loadTypeScript } from "../../../shared/checkout";
import { identityOf, isAlive } from "../../../shared/pids";

/** What is in a session of its own, as a local Azure and its etcd are, and so is what that starts. */
const daemon = `require("node:child_process").spawn("setsid", ["sh", "-c", "echo $$; sleep 600"], { detached: true,
  stdio: "inherit", env: { ...process.env, ...environment } })`;

test("what tests have started ends with them, also when they fail", async () => {
  let left;
  const failing = endTogether(async (environment) => {
    const env = { ...process.env, ...environment };
    const { pid } = spawn("sleep", ["600"], { stdio: "ignore", detached: true, env });
    left = identityOf(pid!);
    throw new Error("they failed");
  });

  await expect(failing).rejects.toThrow("they failed");
  expect(isAlive(left!)).toBe(false);
});

test("it ends too when npm test is killed, with all that it has started", async () => {
  const program = `require("./tools/cli/test/end-together").endTogether((environment) => {
    ${daemon}.on("error", (error) => { throw error; });
    return new Promise(() => setInterval(() => undefined, 1000));
  });`;
  const tests = spawn(process.execPath, [...loadTypeScript, "-e", program], {
    cwd: checkout,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [pid] = await once(tests.stdout.setEncoding("utf8"), "data");
  const left = identityOf(Number(pid));
  expect(isAlive(left)).toBe(true);

  tests.kill("SIGKILL");

  while (isAlive(left)) await wait(50);
});
