import { existsSync } from "node:fs";
import { join } from "node:path";

import { checkout } from "../../../shared/checkout";
import { trace } from "../../../trace/evaluate/trace";
import type { NodeDump } from "../../../trace/model/dump";
import type { Answer, Packet } from "../../../trace/model/packet";
import { nodeDump } from "../../../trace/read/read-dumps";
import { type Case, casesOf } from "../../../trace/tests/support/kube-proxy/cases";
import type { Session, SessionTask } from "../../../trace/tests/support/kube-proxy/session";
import { inLab, labProblem } from "../../packets/enter";
import type { LabBinaries } from "../../packets/machine";
import { node } from "../../packets/network";
import type { Probe, ProbeResult } from "../../packets/probe-agent";
import type { AgentName } from "../../packets/start-agents";

/** Far beyond chance: once in five hundred million tries. A third that got none of 80 is seen. */
const sigmas = 6;

type Claim = Pick<Answer, "verdict" | "endpoints" | "masquerade" | "affinitySeconds">;

/** What an answer says and packets did otherwise; nothing when they agree. */
function disagreements(claim: Claim, packet: Packet, seen: ProbeResult): string[] {
  const total = Object.values(seen.answers).flatMap((agents) => Object.values(agents));
  const answered = total.reduce((sum, count) => sum + count, 0);
  const all = answered + seen.refused + seen.silent;
  const unlike = (what: string, count: number): string[] =>
    count === all ? [] : [`${all - count} of ${all} were not ${what}`];
  switch (claim.verdict) {
    case "dnat":
      return [
        ...unlike("answered", answered),
        ...shares(claim, seen, answered),
        ...sources(claim, packet, seen),
      ];
    case "pass":
      return unlike("passed on as they were", passed(packet, seen));
    case "drop":
      return unlike("dropped", seen.silent);
    case "reject":
      return unlike("rejected", seen.refused);
    default:
      return ["the answer leaves open what packets do"];
  }
}

const sum = (agents: Readonly<Record<string, number>> = {}): number =>
  Object.values(agents).reduce((all, count) => all + count, 0);

function shares(
  { endpoints, affinitySeconds }: Claim,
  { answers }: ProbeResult,
  all: number,
): string[] {
  const unexpected = Object.keys(answers)
    .filter((end) => !endpoints.some(({ address }) => address === end))
    .map((end) => `${end} answered`);
  if (affinitySeconds !== null) {
    const ends = Object.keys(answers).length;
    return ends === 1 ? unexpected : [...unexpected, `${ends} ends answered in spite of affinity`];
  }
  const wrong = endpoints.flatMap(({ address, probability }) => {
    const count = sum(answers[address]);
    const bound = sigmas * Math.sqrt(all * probability * (1 - probability));
    return Math.abs(count - all * probability) <= bound
      ? []
      : [`${address} got ${count} of ${all}, expected a share of ${probability}`];
  });
  return [...unexpected, ...wrong];
}

function sources(
  { endpoints, masquerade }: Claim,
  packet: Packet,
  { answers }: ProbeResult,
): string[] {
  return endpoints.flatMap(({ address, masquerade: own = masquerade }) =>
    Object.keys(answers[address] ?? {})
      .filter((peer) => (peer !== packet.source) !== own && !looksAlike(packet, peer))
      .map((peer) => `${address} saw ${peer}, expected ${own ? "another source" : "the source"}`),
  );
}

/** The node's own packets may be masqueraded to the address that they had. */
const looksAlike = ({ from, source }: Packet, peer: string): boolean =>
  from === "node" && peer === source;

/**
 * Answered by the very destination to the very source; the node itself refuses what nobody takes.
 */
function passed({ destination, port, source }: Packet, { answers, refused }: ProbeResult): number {
  const isNode = [node.v4, node.v6].some((address) => address === destination);
  const own = destination.includes(":") ? `[${destination}]:${port}` : `${destination}:${port}`;
  return (answers[own]?.[source ?? ""] ?? 0) + (isNode ? refused : 0);
}

const modes = ["iptables", "nftables"] as const;
type Sent = Case & { readonly trial: readonly [AgentName, Probe] };

const sent = (mode: (typeof modes)[number]) =>
  casesOf(mode).filter((one): one is Sent => one.trial !== null);

const folder = process.env["ZONED_BINARIES"] ?? "";
const binaries = Object.fromEntries(
  ["etcd", "kube-apiserver", "kube-proxy"].map((name) => [name, join(folder, name)]),
) as unknown as LabBinaries;

const missing = Object.values(binaries).find((file) => !existsSync(file));
const reason =
  missing === undefined ? labProblem() : `ZONED_BINARIES names no folder with ${missing}`;

if (reason !== undefined) process.stderr.write(`No packets are sent: ${reason}.\n`);

/**
 * Real packets through the rules of a real kube-proxy; skipped, with the reason, where they cannot
 * be sent.
 */
(reason === undefined ? describe : describe.skip)(
  `where packets go${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let sessions: Record<(typeof modes)[number], Session>;

    beforeAll(async () => {
      const probes = Object.fromEntries(
        modes.map((mode) => [mode, sent(mode).map(({ trial }) => trial)]),
      );
      const task: SessionTask = { binaries, modes, probes };
      const { signal } = new AbortController();
      sessions = await inLab(
        join(checkout, "tools/trace/tests/support/kube-proxy/session.ts"),
        task,
        {
          onProgress: () => {},
          signal,
        },
      );
    });

    describe.each(modes)("%s", (mode) => {
      let node: NodeDump;

      beforeAll(() => {
        node = nodeDump(sessions[mode].dumps);
      });

      const cases = sent(mode).map((one, index) => [one.title, one, index] as const);

      it.each(cases)("%s", (_, { packet, expected }, index) => {
        const results = sessions[mode].results[index]!;

        expect(disagreements(expected, packet, results)).toEqual([]);
        expect(disagreements(trace(node, packet), packet, results)).toEqual([]);
      });
    });
  },
);
