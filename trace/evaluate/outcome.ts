import type { Answer, Endpoint } from "../model/answer";
import type { Doubt, Flow } from "./flow";

/** What comes of a packet as far as the dumps decide it. */
export type Outcome = Pick<
  Answer,
  "verdict" | "endpoints" | "masquerade" | "affinitySeconds" | "reason"
>;

/**
 * The outcome of all ways together: chances are mixed, and where a doubt makes a difference it is
 * unknown.
 */
export function outcomeOf(flows: readonly Flow[]): Outcome {
  const doubt = firstDoubt(flows);
  if (doubt === null) return ofChances(flows);
  const past = (taken: boolean): Flow[] =>
    flows
      .filter((flow) => flow.doubts.every((each) => each.id !== doubt.id || each.taken === taken))
      .map((flow) => ({ ...flow, doubts: flow.doubts.filter((each) => each.id !== doubt.id) }));
  const [yes, no] = [past(true), past(false)];
  if (yes.length === 0) return outcomeOf(no);
  if (no.length === 0) return outcomeOf(yes);
  return either(outcomeOf(yes), outcomeOf(no), doubt);
}

function firstDoubt(flows: readonly Flow[]): Doubt | null {
  return flows.find((flow) => flow.doubts.length > 0)?.doubts[0] ?? null;
}

function either(yes: Outcome, no: Outcome, doubt: Doubt): Outcome {
  const same = yes.verdict === no.verdict && sameEndpoints(yes.endpoints, no.endpoints);
  if (!same) {
    const known = [yes, no].find((each) => each.verdict === "unknown");
    const dnat = [yes, no].find((each) => each.endpoints.length > 0);
    return {
      verdict: "unknown",
      endpoints: dnat?.endpoints ?? [],
      masquerade: yes.masquerade === no.masquerade ? yes.masquerade : "unknown",
      affinitySeconds: yes.affinitySeconds ?? no.affinitySeconds,
      reason:
        known?.reason ??
        `It cannot be decided ${doubt.why}: either ${inWords(yes)}, or ${inWords(no)}.`,
    };
  }
  const endpoints = yes.endpoints.map((endpoint, at) =>
    eitherEndpoint(endpoint, no.endpoints[at]!, yes, no),
  );
  if (yes.masquerade === no.masquerade)
    return { ...yes, ...masqueradeOf(endpoints, yes.masquerade) };
  const reason = `${destinationOf(endpoints)}; whether the source is masqueraded depends on ${doubt.why}.`;
  return { ...yes, ...masqueradeOf(endpoints, "unknown"), reason };
}

function eitherEndpoint(yes: Endpoint, no: Endpoint, ofYes: Outcome, ofNo: Outcome): Endpoint {
  const [a, b] = [yes.masquerade ?? ofYes.masquerade, no.masquerade ?? ofNo.masquerade];
  return { ...yes, masquerade: a === b ? a : "unknown" };
}

function sameEndpoints(a: readonly Endpoint[], b: readonly Endpoint[]): boolean {
  return (
    a.length === b.length &&
    a.every(
      (one, at) =>
        one.address === b[at]!.address && Math.abs(one.probability - b[at]!.probability) < 1e-9,
    )
  );
}

function inWords({ verdict, endpoints }: Outcome): string {
  switch (verdict) {
    case "dnat":
      return `it goes to ${endpoints.length === 1 ? endpoints[0]!.address : `one of ${endpoints.length} endpoints`}`;
    case "drop":
      return "it is dropped";
    case "reject":
      return "it is rejected";
    case "pass":
      return "it goes on as it is";
    default:
      return "the dumps do not say";
  }
}

type Kind = Outcome["verdict"];

const serviceOf = (flow: Flow): string | null =>
  flow.dnat.filter((each) => each.kubeProxy).at(-1)?.to ?? null;

function kindOf(flow: Flow): Kind {
  return flow.verdict?.kind ?? (serviceOf(flow) === null ? "pass" : "dnat");
}

function ofChances(flows: readonly Flow[]): Outcome {
  const kinds = new Set(flows.map(kindOf));
  const endpoints = endpointsOf(flows);
  const affinitySeconds =
    flows.map((flow) => flow.affinitySeconds).find((seconds) => seconds !== null) ?? null;
  const stopped = flows.find((flow) => flow.verdict !== null);
  if (kinds.size > 1) {
    const share = flows
      .filter((flow) => flow.verdict !== null)
      .reduce((sum, flow) => sum + flow.probability, 0);
    const reason = `Not all new connections end alike: of ${percent(share)} it holds that ${lower(stopped?.verdict?.why ?? "no rule sends them on.")}`;
    return { verdict: "unknown", ...masqueradeOf(endpoints, "unknown"), affinitySeconds, reason };
  }
  const [verdict] = [...kinds] as [Kind];
  if (verdict !== "dnat") {
    const reason = stopped?.verdict?.why ?? whyPass(flows);
    return { verdict, endpoints: [], masquerade: false, affinitySeconds: null, reason };
  }
  return {
    verdict,
    ...masqueradeOf(endpoints, false),
    affinitySeconds,
    reason: whyDnat(flows, endpoints),
  };
}

function endpointsOf(flows: readonly Flow[]): Endpoint[] {
  const found = new Map<string, { probability: number; masquerade: boolean | "unknown" }>();
  for (const flow of flows) {
    const address = serviceOf(flow);
    if (address === null || flow.verdict !== null) continue;
    const masquerade = flow.snat.some((each) => each.kubeProxy);
    const before = found.get(address);
    found.set(address, {
      probability: (before?.probability ?? 0) + flow.probability,
      masquerade: before === undefined || before.masquerade === masquerade ? masquerade : "unknown",
    });
  }
  return [...found].map(([address, each]) => ({ address, ...each }));
}

/** One answer for all where there is one; else each endpoint says its own. */
function masqueradeOf(
  endpoints: readonly Endpoint[],
  none: boolean | "unknown",
): Pick<Outcome, "endpoints" | "masquerade"> {
  const decisions = new Set(endpoints.map((endpoint) => endpoint.masquerade ?? none));
  if (decisions.size > 1) return { endpoints, masquerade: "unknown" };
  const [masquerade] = decisions.size === 1 ? [...decisions] : [none];
  return {
    endpoints: endpoints.map(({ address, probability }) => ({ address, probability })),
    masquerade: masquerade!,
  };
}

function whyPass(flows: readonly Flow[]): string {
  if (flows.some((flow) => !flow.tracked))
    return "A rule takes the packet out of connection tracking, so no Service rule sees it, and it goes on as it is.";
  const other = flows.flatMap((flow) => flow.dnat)[0];
  if (other !== undefined)
    return `No Service rule applies; a rule that is not kube-proxy's sends the packet to ${other.to}.`;
  return "No Service rule applies, and the packet goes on as it is.";
}

function whyDnat(flows: readonly Flow[], endpoints: readonly Endpoint[]): string {
  const first = flows[0]!.dnat.find((each) => each.kubeProxy)!;
  const masquerading = flows.flatMap((flow) => flow.snat).find((each) => each.kubeProxy);
  const by = endpoints.length === 1 ? `, by ${first.by}` : "";
  const always = flows.every((flow) => flow.snat.some((each) => each.kubeProxy))
    ? ""
    : "on some ways ";
  const source =
    masquerading === undefined ? "" : `; the source is ${always}masqueraded by ${masquerading.by}`;
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
