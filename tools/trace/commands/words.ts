import type { Answer, Endpoint, Packet, Step } from "../model/packet";

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

/** The answer for a person at a terminal. */
export function words(answer: Answer, colours: Colours): string {
  return [
    [`${colours.bold(title(answer.packet))}  ${colours.dim(`(${answer.mode})`)}`],
    ...visits(answer.steps).map(({ title, steps }) => [
      colours.bold(title),
      ...steps.flatMap(({ chain, rule, effect }) => [
        `  ${chain}  ${colours.dim(withoutChain(rule, chain))}`,
        `    → ${effect}`,
      ]),
    ]),
    endpoints(answer, colours),
    forTheClient(answer),
    answer.notes.map((note) => `${colours.dim("note")}  ${note}`),
    [`${verdict(answer, colours)}  ${answer.reason}`],
  ]
    .filter((block) => block.length > 0)
    .map((block) => block.join("\n"))
    .join("\n\n")
    .concat("\n");
}

/** The chain stands before the rule already. */
const withoutChain = (rule: string, chain: string): string =>
  rule.startsWith(`-A ${chain} `) ? rule.slice(chain.length + 4) : rule;

export function title({ from, source, destination, port, protocol }: Packet): string {
  const host = destination.includes(":") ? `[${destination}]` : destination;
  return `${source === null ? from : `${from} ${source}`} → ${host}:${port}/${protocol}`;
}

function endpoints({ endpoints }: Answer, colours: Colours): string[] {
  if (endpoints.length === 0) return [];
  const shares = endpoints.map(({ probability }) => share(probability));
  const widths = {
    address: Math.max(...endpoints.map(({ address }) => address.length)),
    share: Math.max(...shares.map((text) => text.length)),
  };
  return [
    colours.bold(endpoints.length === 1 ? "endpoint" : `endpoints (${endpoints.length})`),
    ...endpoints.map((endpoint, index) =>
      [
        "",
        colours.good(endpoint.address.padEnd(widths.address)),
        (shares[index] ?? "").padStart(widths.share),
        percent(endpoint.probability).padStart(8),
        masquerade(endpoint),
      ]
        .join("  ")
        .trimEnd(),
    ),
  ];
}

function masquerade({ masquerade }: Endpoint): string {
  if (masquerade === undefined) return "";
  if (masquerade === "unknown") return "perhaps masqueraded";
  return masquerade ? "masqueraded" : "not masqueraded";
}

/** What the client of an endpoint notices besides. */
function forTheClient({ verdict, masquerade, affinitySeconds, endpoints }: Answer): string[] {
  if (verdict !== "dnat") return [];
  const source = endpoints.some((endpoint) => endpoint.masquerade !== undefined)
    ? "the source is masqueraded for some endpoints, see above"
    : {
        true: "the source is masqueraded: the endpoint sees the node's address",
        false: "the source stays as it is",
        unknown: "whether the source is masqueraded cannot be said",
      }[`${masquerade}`];
  return affinitySeconds === null
    ? [source]
    : [
        source,
        `a client stays with its endpoint for ${affinitySeconds} s after its last connection`,
      ];
}

function verdict({ verdict }: Answer, colours: Colours): string {
  const colour = {
    dnat: "good",
    pass: "bold",
    drop: "bad",
    reject: "bad",
    unknown: "unknown",
  } as const;
  return colours[colour[verdict]](colours.bold(verdict));
}

/** What words look like; plain where no terminal reads them. */
export interface Colours {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly unknown: (text: string) => string;
}

const itself = (text: string): string => text;

export const plain: Colours = {
  bold: itself,
  dim: itself,
  good: itself,
  bad: itself,
  unknown: itself,
};

const escape =
  (code: number) =>
  (text: string): string =>
    `\u001b[${code}m${text}\u001b[0m`;

const coloured: Colours = {
  bold: escape(1),
  dim: escape(2),
  good: escape(32),
  bad: escape(31),
  unknown: escape(33),
};

/** Colours on a terminal that has them, unless NO_COLOR asks for none (https://no-color.org). */
export function coloursFor(
  stream: { readonly isTTY?: boolean },
  { NO_COLOR, TERM }: Readonly<Record<string, string | undefined>>,
): Colours {
  return stream.isTTY === true && !NO_COLOR && TERM !== "dumb" ? coloured : plain;
}

/** Old iptables prints probabilities that are off by as much: its thirds are not quite thirds. */
const tolerance = 1e-5;

const largestDenominator = 64;

/** `1/3`, where it is one; `12.34 %` else. */
export function share(probability: number): string {
  const inverse = Math.round(1 / probability);
  if (Math.abs(1 / inverse - probability) < tolerance / inverse) return whole(1, inverse);
  for (let below = 1; below <= largestDenominator; below += 1) {
    const above = Math.round(probability * below);
    if (above > 0 && Math.abs(above / below - probability) < tolerance) return whole(above, below);
  }
  return percent(probability);
}

const whole = (above: number, below: number): string => (below === 1 ? "all" : `${above}/${below}`);

const percent = (probability: number): string =>
  `${(probability * 100).toPrecision(probability < 0.1 ? 2 : 4)} %`;
