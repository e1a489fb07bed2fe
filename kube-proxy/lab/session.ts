import { startApiServer } from "./api-server";
import type { LabBinaries } from "./binaries";
import { create, createNode } from "./create";
import { dump } from "./dumps";
import { inside, output, say } from "./inside";
import { buildNetwork, node, ranges } from "./network";
import type { Question, Seen } from "./peer";
import { Peers, type Somewhere } from "./peers";
import { type Mode, startProxy } from "./proxy";
import { services } from "./services";

export interface SessionTask {
  readonly binaries: LabBinaries;
  readonly modes: readonly Mode[];
  /** What to send, and from where, once the rules of a mode are there. */
  readonly questions: Readonly<Partial<Record<Mode, readonly (readonly [Somewhere, Question])[]>>>;
}

export interface Session {
  /** By file name. */
  readonly dumps: Readonly<Record<string, string>>;
  /** What became of each question. */
  readonly seen: readonly Seen[];
}

/** Services of every kind under a real kube-proxy: what it wrote, and where packets went. */
inside<SessionTask, Partial<Record<Mode, Session>>>(async ({ binaries, modes, questions }) => {
  say("network, API server");
  await buildNetwork();
  await startApiServer(binaries, { services: ranges.services, node: node.v4 });
  await createNode({ ...node, zone: "1" });
  await create(services);
  const peers = Object.keys(questions).length > 0 ? await Peers.start() : undefined;
  const sessions: Partial<Record<Mode, Session>> = {};
  for (const mode of modes) {
    say(`kube-proxy with ${mode}`);
    const proxy = await startProxy(binaries["kube-proxy"], mode, {
      node: node.name,
      pods: ranges.pods,
    });
    const dumps = await dump(mode);
    const seen = peers ? await asked(peers, questions[mode] ?? []) : [];
    sessions[mode] = { dumps, seen };
    await proxy.stop();
    await output("nft", "flush", "ruleset");
  }
  return sessions;
});

/** Puts all questions, side by side where they come from different places. */
async function asked(
  peers: Peers,
  questions: readonly (readonly [Somewhere, Question])[],
): Promise<Seen[]> {
  const seen: Seen[] = [];
  const places = [...new Set(questions.map(([place]) => place))];
  await Promise.all(
    places.map(async (place) => {
      for (const [index, [from, question]] of questions.entries()) {
        if (from === place) seen[index] = await peers.ask(place, question);
      }
    }),
  );
  return seen;
}
