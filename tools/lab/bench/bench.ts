import { prepareBinaries } from "../../programs/engine";
import type { Progress } from "../../shared/progress";
import type { Bench } from "./local-stack";
import { growth } from "./growth";
import { previews } from "./previews";
import { report } from "./report";
import { wallTime } from "./wall-time";

/** Measures, prints a report in Markdown, and returns the exit code: 1 when a ratio is too high. */
export async function bench(progress: Progress, signal: AbortSignal): Promise<number> {
  const binaries = await prepareBinaries({ progress, signal });
  const step = progress.step("measuring", "20 min");
  const shared: Bench = { binaries, signal, log: (line) => progress.line(line) };
  const measure = async () => {
    const walls = [
      await wallTime(shared, "dev"),
      await wallTime(shared, "prod"),
      await wallTime(shared, "dev", "an image"),
      await wallTime(shared, "prod", "an image"),
    ];
    return report(walls, await previews(shared), await growth(shared));
  };
  const { text, missed } = await measure().finally(() => step.done(false));
  progress.line(`\n${text}\n`);
  for (const sentence of missed) progress.line(`too high: ${sentence}`);
  return missed.length === 0 ? 0 : 1;
}
