import type { Answer, Endpoint } from "../answer";
import type { Packet } from "../packet";
import type { Colours } from "./colours";
import { visits } from "./hooks";
import { percent, share } from "./share";

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
    facts(answer),
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

function facts({ verdict, masquerade, affinitySeconds, endpoints }: Answer): string[] {
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
    unknown: "open",
  } as const;
  return colours[colour[verdict]](colours.bold(verdict));
}
