import { existsSync } from "node:fs";
import { join } from "node:path";

import { checkout } from "../../../shared/checkout";
import { disagreements } from "./support/agreement";
import type { LabBinaries } from "../../packets/machine";
import { type Case, casesOf } from "../../../trace/tests/support/kube-proxy/cases";
import { inLab, labProblem } from "../../packets/enter";
import type { Probe } from "../../packets/probe-agent";
import type { AgentName } from "../../packets/start-agents";
import type { Session, SessionTask } from "../../../trace/tests/support/kube-proxy/session";
import type { NodeDump } from "../../../trace/model/dump";
import { nodeDump } from "../../../trace/read/read-dumps";
import { trace } from "../../../trace/evaluate/trace";

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
    }, 180_000);

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
