import { once } from "node:events";

import { prepareMirror } from "../mirror/mirror";
import { reportLines } from "../mirror/report";
import { serveMirror } from "../mirror/serve/serve";
import type { Progress } from "../shared/progress";
import { Interrupted, UserError } from "../shared/user-error";

export interface MirrorWords {
  readonly folder?: string;
  readonly system?: string;
  readonly serve?: string;
}

/** `npm run mirror`: fills the folder, reports what is in it, and serves it when asked to. */
export async function mirrorCommand(
  { serve, ...options }: MirrorWords,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const at = serve === undefined ? undefined : addressOf(serve);
  const { folder, report } = await prepareMirror({ ...options, progress, signal });
  progress.line(`the mirror in ${folder} has:`);
  for (const line of reportLines(report)) progress.line(line);
  if (at === undefined) {
    progress.line("serve it: npm run mirror -- --serve ADDRESS:PORT");
    return;
  }
  const server = await serveMirror(folder, at);
  progress.line(`serving it; for a stack: pulumi config set mirror ${server.url} (Ctrl-C ends it)`);
  if (!signal.aborted) await once(signal, "abort");
  await server.close();
  throw new Interrupted();
}

/** The two parts of `ADDRESS:PORT`. */
export function addressOf(text: string): { address: string; port: number } {
  const [, address, digits] = /^\[?([^[\]]+?)\]?:(\d+)$/.exec(text) ?? [];
  const port = Number(digits);
  if (address !== undefined && port <= 65_535) return { address, port };
  throw new UserError(`--serve is ${text}, expected ADDRESS:PORT, such as 10.0.0.4:8080`, 2);
}
