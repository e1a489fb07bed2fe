import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

import { end, identityOf, isAlive } from "../pids";

/** A process whose first thread ends at once, and is a zombie for as long as the other lives. */
const headless = `
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print("begun", flush=True)
ctypes.CDLL(None).pthread_exit(None)
`;

const stateOf = (pid: number): string | undefined =>
  /\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];

test("a process is alive until its last thread is gone, which may hold ports", async () => {
  const child = spawn("python3", ["-c", headless], { stdio: ["ignore", "pipe", "inherit"] });
  const identity = identityOf(child.pid!);
  await once(child.stdout, "data");
  while (stateOf(child.pid!) !== "Z") await wait(20);

  expect(isAlive(identity)).toBe(true);

  await end(identity, ["SIGKILL"]);
  expect(isAlive(identity)).toBe(false);
});

test("another process with the same number is not the one that was meant", () => {
  const { pid } = process;
  expect(isAlive(identityOf(pid))).toBe(true);
  expect(isAlive({ pid, started: "earlier" })).toBe(false);
});
