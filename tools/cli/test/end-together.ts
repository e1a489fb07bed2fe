import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { checkout, loadTypeScript } from "../../shared/checkout";
import { endMarked } from "../../shared/pids";

const variable = "ZONED_TEST";

/**
 * Does something, and then ends every process that it has started, and those that these have started, in
 * whatever group or session: also when it fails, and when this process is killed.
 *
 * A process of its own waits for that, at the other end of a pipe, which the system closes.
 *
 * @param work is given what the environment of what it starts has to have
 */
export async function endTogether<T>(
  work: (environment: Readonly<Record<string, string>>) => Promise<T>,
): Promise<T> {
  const mark = join(tmpdir(), `test-${process.pid}-${process.hrtime.bigint()}`);
  const watcher = spawn(process.execPath, [...loadTypeScript, __filename, mark], {
    cwd: checkout,
    // Out of the terminal's group, whose Ctrl-C is for those that it ends.
    detached: true,
    stdio: ["pipe", "ignore", "inherit"],
  });
  const ended = once(watcher, "close");
  try {
    return await work({ [variable]: mark });
  } finally {
    watcher.stdin.end();
    await ended;
  }
}

if (require.main === module) {
  const [mark] = process.argv.slice(2);
  process.stdin.resume().once("end", () => void endMarked(variable, (one) => one === mark));
}
