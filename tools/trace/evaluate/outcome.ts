import type { Answer, Endpoint } from "../model/packet";
import { type Flow, merge } from "./flow";

/** What happens to the packet, as far as the dumps tell. */
export type Outcome = Pick<
  Answer,
  "verdict" | "endpoints" | "masquerade" | "affinitySeconds" | "reason"
>;

/** Combines all flows. The outcome is unknown if it depends on an undecidable question. */
export function outcomeOf(flows: readonly Flow[]): Outcome {
  const affinitySeconds =
    flows.map((flow) => flow.affinitySeconds).find((seconds) => seconds !== null) ?? null;
  const [kind, ...others] = new Set(flows.map(kindOf));
  // Which doubts are left where it is only asked how a connection ends.
  const ends = merge(flows, (flow) => JSON.stringify([kindOf(flow), serviceOf(flow)]));
  const undecided = ends.filter(({ doubts }) => doubts.length > 0);
  if (kind === undefined || others.length > 0 || (kind === "dnat" && undecided.length > 0)) {
    const endpoints = ifItGoesOn(ends);
    const reason = undecided.length > 0 ? whyUndecided(ends, undecided) : whyUnlike(ends);
    return { verdict: "unknown", endpoints, masquerade: "unknown", affinitySeconds, reason };
  }
  if (kind !== "dnat") {
    const masquerade = kind === "unknown" ? "unknown" : false;
    const reason = kind === "pass" ? whyPass(flows) : whysOf(flows);
    return { verdict: kind, endpoints: [], masquerade, affinitySeconds: null, reason };
  }
  const endpoints = endpointsOf(flows);
  const sources = merge(flows, (flow) => JSON.stringify([serviceOf(flow), isMasqueraded(flow)]));
  const questions = questionsOf(sources);
  const reason =
    questions === ""
      ? whyDnat(flows, endpoints)
      : `${destinationOf(endpoints)}; whether the source is masqueraded depends on ${questions}.`;
  return { verdict: kind, ...masqueradeOf(endpoints), affinitySeconds, reason };
}

type Kind = Outcome["verdict"];

const serviceOf = (flow: Flow): string | null =>
  flow.dnat.filter((each) => each.kubeProxy).at(-1)?.to ?? null;

const isMasqueraded = (flow: Flow): boolean => flow.snat.some((each) => each.kubeProxy);

function kindOf(flow: Flow): Kind {
  return flow.verdict?.kind ?? (serviceOf(flow) === null ? "pass" : "dnat");
}

/** The undecidable questions, each once; a single one with the rule that asks it. */
function questionsOf(flows: readonly Flow[]): string {
  const doubts = flows.flatMap((flow) => flow.doubts);
  const [why, ...others] = new Set(doubts.map((doubt) => doubt.why));
  if (why === undefined) return "";
  if (others.length > 0) return listed([why, ...others], ", or ", 2);
  const rules = doubts.flatMap(({ by }) => by ?? []);
  return rules.length === 0 ? why : `${why} (${listed(rules, " and ")})`;
}

const shareOf = (flows: readonly Flow[]): number =>
  flows.reduce((sum, { probability }) => sum + probability, 0);

/** Explains an outcome that depends on undecidable questions. */
function whyUndecided(ends: readonly Flow[], undecided: readonly Flow[]): string {
  const certain = ends.filter(({ doubts }) => doubts.length === 0);
  const share = shareOf(certain);
  const kinds = [...new Set(undecided.map(kindOf))];
  const ways = kinds.map((kind) => inWords(undecided.filter((flow) => kindOf(flow) === kind)));
  const question = `cannot be decided ${questionsOf(undecided)}: either ${ways.join(", or ")}`;
  return share < 1e-9
    ? `It ${question}.`
    : `Of ${percent(1 - share)} of new connections it ${question}. ${sharesOf(certain)}`;
}

const whyUnlike = (ends: readonly Flow[]): string =>
  `Not all new connections end alike. ${sharesOf(ends)}`;

/** The share of connections per reason, one sentence each. */
function sharesOf(flows: readonly Flow[]): string {
  const alike = new Map<string, Flow[]>();
  for (const flow of flows) {
    const key = flow.verdict?.why ?? kindOf(flow);
    alike.set(key, [...(alike.get(key) ?? []), flow]);
  }
  const sentences = [...alike.values()].map((group) => {
    const why = group[0]!.verdict?.why ?? `${inWords(group)}.`;
    return `Of ${percent(shareOf(group))} it holds that ${lower(why)}`;
  });
  return listed(sentences, " ");
}

/** Flows of one kind. */
function inWords(flows: readonly Flow[]): string {
  const kind = kindOf(flows[0]!);
  if (kind === "dnat")
    return `it goes to ${listed(
      flows.map((flow) => serviceOf(flow)!),
      " or ",
    )}`;
  const words = {
    drop: "it is dropped",
    reject: "it is rejected",
    pass: "it goes on as it is",
    unknown: "the dumps do not say",
  };
  return words[kind];
}

/** Each text once; of many only the first. */
function listed(texts: readonly string[], between: string, most = 4): string {
  const all = [...new Set(texts)];
  const more = all.length - most;
  return (more > 1 ? [...all.slice(0, most), `${more} others`] : all).join(between);
}

/** Why all connections are stopped, each reason once. */
const whysOf = (flows: readonly Flow[]): string =>
  listed(
    flows.flatMap(({ verdict }) => verdict?.why ?? []),
    " Or: ",
  );

/**
 * Endpoints of the connections that are not stopped; none if an undecidable question selects the
 * endpoint.
 */
function ifItGoesOn(ends: readonly Flow[]): Endpoint[] {
  const shares = new Map<string, number>();
  for (const flow of ends.filter((each) => kindOf(each) === "dnat")) {
    const address = serviceOf(flow)!;
    shares.set(address, Math.max(shares.get(address) ?? 0, flow.probability));
  }
  const endpoints = [...shares].map(([address, probability]) => ({ address, probability }));
  const all = endpoints.reduce((sum, { probability }) => sum + probability, 0);
  return all > 1 + 1e-9 ? [] : endpoints;
}

function endpointsOf(flows: readonly Flow[]): Endpoint[] {
  const found = new Map<string, { probability: number; masquerade: boolean | "unknown" }>();
  for (const flow of merge(flows, (each) => `${serviceOf(each)}`)) {
    found.set(serviceOf(flow)!, { probability: flow.probability, masquerade: isMasqueraded(flow) });
  }
  for (const flow of flows) {
    const one = found.get(serviceOf(flow)!)!;
    if (one.masquerade !== isMasqueraded(flow)) one.masquerade = "unknown";
  }
  return [...found].map(([address, each]) => ({ address, ...each }));
}

/** One value if all endpoints agree, else one per endpoint. */
function masqueradeOf(endpoints: readonly Endpoint[]): Pick<Outcome, "endpoints" | "masquerade"> {
  const [masquerade, ...others] = new Set(endpoints.map((endpoint) => endpoint.masquerade));
  if (masquerade === undefined || others.length > 0) return { endpoints, masquerade: "unknown" };
  return {
    endpoints: endpoints.map(({ address, probability }) => ({ address, probability })),
    masquerade,
  };
}

function whyPass(flows: readonly Flow[]): string {
  const untracked = flows.filter((flow) => !flow.tracked);
  if (untracked.length > 0) {
    const rule = untracked.length === flows.length ? "A rule takes" : "A rule may take";
    return `${rule} the packet out of connection tracking, so that no Service rule sees it, and it goes on as it is.`;
  }
  const others = flows.flatMap(({ dnat }) => dnat.at(-1)?.to ?? []);
  if (others.length === 0) return "No Service rule applies, and the packet goes on as it is.";
  const sends = others.length === flows.length ? "sends" : "may send";
  return `No Service rule applies; a rule that is not kube-proxy's ${sends} the packet to ${listed(others, " or ")}.`;
}

function whyDnat(flows: readonly Flow[], endpoints: readonly Endpoint[]): string {
  const sending = flows.flatMap(({ dnat }) => dnat.find((each) => each.kubeProxy)?.by ?? []);
  const masquerading = flows.flatMap(({ snat }) => snat.find((each) => each.kubeProxy)?.by ?? []);
  const by = endpoints.length === 1 ? `, by ${listed(sending, " or ")}` : "";
  const always = flows.every(isMasqueraded) ? "" : "on some ways ";
  const source =
    masquerading.length === 0
      ? ""
      : `; the source is ${always}masqueraded by ${listed(masquerading, " or ")}`;
  return `${destinationOf(endpoints)}${by}${source}.`;
}

function destinationOf(endpoints: readonly Endpoint[]): string {
  const [only] = endpoints;
  if (endpoints.length === 1) return `Goes to ${only!.address}`;
  const equal = endpoints.every((each) => Math.abs(each.probability - 1 / endpoints.length) < 1e-6);
  const shares = equal
    ? `each with probability ${Number((1 / endpoints.length).toFixed(4))}`
    : "with unequal probabilities";
  return `Goes to one of ${endpoints.length} endpoints, ${shares}`;
}

const percent = (share: number): string => `${Number((share * 100).toFixed(2))} %`;

const lower = (sentence: string): string => sentence.charAt(0).toLowerCase() + sentence.slice(1);
