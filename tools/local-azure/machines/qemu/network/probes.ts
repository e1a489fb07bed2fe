import { Agent, request } from "node:https";
import { get } from "node:http";
import { connect } from "node:net";

import type { Balanced } from "./network-view";
import { platformAddress, probeKey } from "./ruleset";

interface Standing {
  isUp: boolean;
  /** How many results in a row contradict it. */
  against: number;
}

/** Azure waits for an answer as long as until the next probe is due, and never longer than this. */
const longestWait = 30_000;

/**
 * Each probe is a connection of its own that resumes the last one's session: without KVM a
 * signature takes long.
 */
const agent = new Agent();

/** What one result makes of a machine's standing: it turns when enough in a row contradict it. */
export function judged(standing: Standing, isWell: boolean, threshold: number): Standing {
  if (isWell === standing.isUp) return { ...standing, against: 0 };
  const against = standing.against + 1;
  return against >= threshold ? { isUp: isWell, against: 0 } : { ...standing, against };
}

/**
 * Asks one machine as Azure's balancer does, from the platform's address; any certificate will do.
 */
export function probe(backend: string, rule: Balanced, timeout: number): Promise<boolean> {
  const { protocol = "Tcp", port = rule.backendPort, requestPath = "/" } = rule.probe ?? {};
  const where = { host: backend, port, localAddress: platformAddress };
  return new Promise((resolve) => {
    const late = setTimeout(() => done(false), timeout);
    const done = (isWell: boolean): void => {
      clearTimeout(late);
      resolve(isWell);
      ask.destroy();
    };
    const isWell = ({ statusCode }: { statusCode?: number }) => done(statusCode === 200);
    const ask =
      protocol.toLowerCase() === "https"
        ? request({ ...where, path: requestPath, agent, rejectUnauthorized: false }, isWell).end()
        : protocol.toLowerCase() === "http"
          ? get({ ...where, path: requestPath, agent: false }, isWell)
          : connect(where, () => done(true));
    ask.on("error", () => done(false));
  });
}

/** Probes every machine behind every rule, until it is given others. */
export class Probes {
  private readonly standings = new Map<string, Standing>();
  private timers: NodeJS.Timeout[] = [];

  /**
   * @param changed called when a machine comes or goes
   * @param patience how many times as long as Azure's it waits for an answer
   */
  constructor(
    private readonly changed: () => void,
    private readonly patience: number,
  ) {}

  /** Per rule, the machines that take connections now. */
  healthy(rules: readonly Balanced[]): Map<string, readonly string[]> {
    return new Map(
      rules.map((rule) => [
        probeKey(rule),
        rule.probe === undefined
          ? rule.backends
          : rule.backends.filter((backend) => this.standings.get(this.name(rule, backend))?.isUp),
      ]),
    );
  }

  /** Takes up these rules; what is known of machines that stay is kept. */
  watch(rules: readonly Balanced[]): void {
    this.timers.forEach(clearInterval);
    const pairs = rules.flatMap((rule) =>
      rule.probe === undefined ? [] : rule.backends.map((backend) => ({ rule, backend })),
    );
    const names = pairs.map(({ rule, backend }) => this.name(rule, backend));
    for (const name of this.standings.keys()) {
      if (!names.includes(name)) this.standings.delete(name);
    }
    this.timers = pairs.map(({ rule, backend }) => this.every(rule, backend));
  }

  private every(rule: Balanced, backend: string): NodeJS.Timeout {
    const { intervalInSeconds = 15, numberOfProbes = 1, probeThreshold } = rule.probe ?? {};
    const interval = intervalInSeconds * 1000;
    const name = this.name(rule, backend);
    if (!this.standings.has(name)) this.standings.set(name, { isUp: false, against: 0 });
    let isAsking = false;
    return setInterval(async () => {
      if (isAsking) return;
      isAsking = true;
      const isWell = await probe(backend, rule, Math.min(interval, longestWait) * this.patience);
      isAsking = false;
      const before = this.standings.get(name);
      if (before === undefined) return;
      const after = judged(before, isWell, probeThreshold ?? numberOfProbes);
      this.standings.set(name, after);
      if (after.isUp !== before.isUp) this.changed();
    }, interval);
  }

  private name = (rule: Balanced, backend: string): string => `${probeKey(rule)} ${backend}`;
}
