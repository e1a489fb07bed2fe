import type { Step } from "../model/answer";

/** The steps between two of the kernel's own calls. */
export interface Visit {
  /** `prerouting · nat`, `forward · ip kube-proxy`. */
  readonly title: string;
  readonly steps: readonly Step[];
}

const builtIn = /^(PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING)$/;

/** Base chains of nftables may have any name; people and kube-proxy put the hook into it. */
const named = /(?:^|[^a-z])(prerouting|input|forward|output|postrouting)(?![a-z/])/i;

/** The way through the kernel, hook by hook and table by table. */
export function visits(steps: readonly Step[]): Visit[] {
  const found: { title: string; table: string; hook: string | undefined; steps: Step[] }[] = [];
  for (const step of steps) {
    const last = found.at(-1);
    const hook = hookOf(step);
    if (last?.table === step.table && (hook === undefined || hook === last.hook)) {
      last.steps.push(step);
    } else {
      const likely = hook ?? hookIn(step.chain);
      const title = likely === undefined ? step.table : `${likely} · ${step.table}`;
      found.push({ title, table: step.table, hook: likely, steps: [step] });
    }
  }
  return found;
}

function hookOf({ table, chain }: Step): string | undefined {
  const isNftables = table.includes(" ");
  // A chain of a Service has the Service's name in it, which may be any word.
  if (isNftables) return chain.includes("/") ? undefined : hookIn(chain);
  return builtIn.test(chain) ? chain.toLowerCase() : undefined;
}

const hookIn = (chain: string): string | undefined => named.exec(chain)?.[1]?.toLowerCase();
