import { accessSync, constants } from "node:fs";
import { join } from "node:path";

import { stop } from "../../local-azure/rehearsal/stop";
import { lockFolder, rehearsalFolder } from "../../local-azure/rehearsal/state-folder";
import { makeFolder, reasonOf } from "../../shared/files";
import { type Progress, spoken } from "../../shared/progress";
import { Interrupted, messageOf, UserError } from "../../shared/user-error";
import { chapters, notCovered } from "./chapters";
import type { Chapter, Claim, Result } from "./claim";
import { RealCluster } from "./real-cluster";
import { Findings, summary } from "./findings";

export interface SuiteOptions {
  /** Folder of the report, and of everything that machines need while they live. */
  readonly folder: string;
  /** Keys of the chapters that are run. */
  readonly only: readonly string[];
  /** Leaves the machines of a chapter in which a claim is not true, and ends there. */
  readonly keep: boolean;
}

/** Those of these keys; without any, all but those that take a night. */
export const chosen = (only: SuiteOptions["only"]): readonly Chapter[] =>
  chapters.filter(({ key, listed }) => (only.length === 0 ? !listed : only.includes(key)));

/** Finds out what is true of real machines, writes the report, and returns the exit code. */
export async function testMachines(
  { folder, only, keep }: SuiteOptions,
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  openFolder(folder);
  const release = lockFolder(folder);
  const record = new Findings(folder);
  try {
    for (const chapter of chosen(only)) {
      const state = join(folder, chapter.key);
      if (rehearsalFolder(state) === undefined) {
        if (!chapter.listed && record.isWell(chapter)) continue;
        // Of machines that are gone nothing more can be asked.
        record.forget(chapter);
      }
      const isWell = await runChapter(chapter, state, record, progress, signal);
      if (!isWell && keep) {
        progress.line(
          `the machines are left as they are; to end them: npm stop -- --state ${state}`,
        );
        return 1;
      }
      await stop({ state, discard: false }, progress, signal);
    }
    record.addNotCovered(notCovered);
    const { results } = record.report;
    progress.line(`\n${summary(results)}: ${join(folder, "report.md")}`);
    record.close();
    return results.some(({ outcome }) => outcome === "failed" || outcome === "not run") ? 1 : 0;
  } finally {
    release();
  }
}

function openFolder(folder: string): void {
  try {
    makeFolder(folder);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new UserError(
      `${folder} cannot be the folder of the report: ${reasonOf(error)}; name another (--folder)`,
    );
  }
}

/** Runs a chapter's claims, and returns whether all of them are true. */
async function runChapter(
  chapter: Chapter,
  state: string,
  record: Findings,
  progress: Progress,
  signal: AbortSignal,
): Promise<boolean> {
  progress.line(`\n${chapter.name}`);
  const { settings, upgrades, pullsAddOns, listed } = chapter;
  const machines = { settings, upgrades, pullsAddOns };
  const cluster = await RealCluster.open({ state, ...machines, progress, signal });
  if (chapter.give) await cluster.take(await chapter.give(cluster));
  const claims = [...chapter.claims, ...((await listed?.(cluster)) ?? [])];
  let ground: string | undefined;
  for (const claim of claims) {
    if (record.hasPassed(chapter, claim)) continue;
    const base = { chapter: chapter.name, sentence: claim.sentence };
    if (ground !== undefined) {
      record.add({ ...base, outcome: "not run", note: `since this is not true: ${ground}` });
      continue;
    }
    const result = await judge(claim, cluster, progress);
    record.add({ ...base, ...result });
    if (result.outcome === "failed" && claim.isGround) ground = claim.sentence;
  }
  await record.addSteps(chapter, cluster);
  return record.isWell({ ...chapter, claims });
}

async function judge(
  claim: Claim,
  cluster: RealCluster,
  progress: Progress,
): Promise<Pick<Result, "outcome" | "seconds" | "note">> {
  const since = Date.now();
  const step = progress.step(claim.sentence);
  const seconds = (): number => Math.round((Date.now() - since) / 1000);
  try {
    const note = (await claim.check(cluster)) ?? undefined;
    step.done(false);
    progress.line(
      `  true (${spoken(Date.now() - since)}): ${claim.sentence}${note ? `: ${note}` : ""}`,
    );
    return { outcome: "passed", seconds: seconds(), note };
  } catch (error) {
    step.done(false);
    if (cluster.signal.aborted) throw new Interrupted();
    progress.line(
      `  NOT TRUE (${spoken(Date.now() - since)}): ${claim.sentence}\n${messageOf(error)}`,
    );
    return { outcome: "failed", seconds: seconds(), note: messageOf(error) };
  }
}
