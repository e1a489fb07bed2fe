import { isLocal } from "./addresses/local";
import type { BaseChain, Hook, HookContext, Node, Path } from "./context";
import { anyDevice, type Decision, type Flow, fork, noDevice } from "./flow";
import { merge } from "./merge-flows";

export class Kernel {
  private readonly hooks = new Map<Hook, readonly BaseChain[]>();

  constructor(
    private readonly node: Node,
    private readonly path: Path,
    chains: readonly BaseChain[],
  ) {
    const sorted = [...chains].sort((a, b) => a.priority - b.priority);
    for (const hook of ["prerouting", "input", "forward", "output", "postrouting"] as const) {
      this.hooks.set(
        hook,
        sorted.filter((chain) => chain.hook === hook),
      );
    }
  }

  /** Takes the packet through netfilter's hooks, along every possible path. */
  run(flow: Flow): Flow[] {
    if (flow.from === "node") return this.output(flow);
    return this.each(this.hook("prerouting", [flow]), (routed) =>
      this.route(
        routed,
        (flow) => this.input(flow),
        (flow) => this.forward(flow),
      ),
    );
  }

  /** A packet sent by a local process, or by IPVS for a remote client. */
  private output(flow: Flow): Flow[] {
    return this.each(this.hook("output", [flow]), (sent) => {
      // IPVS sends the packet through output once more, now to the real server.
      if (sent.ipvs && !flow.ipvs) return this.output({ ...sent, dstNatDone: true });
      return this.each(this.hook("postrouting", [sent]), (gone) =>
        gone.from === "node" ? this.loopback(gone) : [gone],
      );
    });
  }

  /** A packet to one of the node's own addresses comes back in by lo. */
  private loopback(flow: Flow): Flow[] {
    if (isLocal(this.node, flow.destination, this.path) !== true) return [flow];
    const back = { ...flow, inDevice: { ...anyDevice, name: "lo" }, outDevice: noDevice };
    return this.each(this.hook("prerouting", [back]), (flow) => this.input(flow));
  }

  private input(flow: Flow): Flow[] {
    return this.each(this.hook("input", [{ ...flow, outDevice: noDevice }]), (taken) => {
      if (!taken.ipvs || flow.ipvs || isLocal(this.node, taken.destination, this.path) === true)
        return [taken];
      return this.output({ ...taken, inDevice: noDevice, outDevice: anyDevice });
    });
  }

  private forward(flow: Flow): Flow[] {
    const out = { ...flow, outDevice: anyDevice };
    return this.each(this.hook("forward", [out]), (sent) => this.hook("postrouting", [sent]));
  }

  private route(
    flow: Flow,
    input: (flow: Flow) => Flow[],
    forward: (flow: Flow) => Flow[],
  ): Flow[] {
    const local: Decision = isLocal(this.node, flow.destination, this.path);
    if (local === true) return input(flow);
    if (local === false) return forward(flow);
    if (flow.dnat.length > 0) {
      this.path.note(
        `${flow.destination} is taken for the address of another machine or of a pod: there is no \`ip addr\` that says otherwise.`,
      );
      return forward(flow);
    }
    const { yes, no } = fork(flow, {
      id: `local ${flow.destination}`,
      why: local.why,
      by: null,
    });
    return [...(yes === null ? [] : input(yes)), ...(no === null ? [] : forward(no))];
  }

  private each(flows: readonly Flow[], go: (flow: Flow) => Flow[]): Flow[] {
    return merge(flows.flatMap((flow) => (flow.verdict === null ? go(flow) : [flow])));
  }

  private hook(hook: Hook, flows: readonly Flow[]): Flow[] {
    const context: HookContext = { node: this.node, path: this.path, hook };
    const destination = hook === "prerouting" || hook === "output";
    const source = hook === "postrouting" || hook === "input";
    let ways = [...flows];
    for (const chain of this.hooks.get(hook) ?? []) {
      ways = this.each(ways, (flow) => {
        const settled = destination ? flow.dstNatDone : flow.srcNatDone;
        if (chain.nat && (settled || !flow.tracked)) return [flow];
        if (flow.ipvs && !flows[0]!.ipvs) return [flow];
        return chain.walk(flow, context);
      });
    }
    // A packet that IPVS takes at a hook skips that hook's remaining chains.
    return ways.map((flow) =>
      flow.ipvs && !flows[0]!.ipvs
        ? flow
        : {
            ...flow,
            dstNatDone: flow.dstNatDone || destination,
            srcNatDone: flow.srcNatDone || source,
          },
    );
  }
}
