import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";

import { loadTypeScript } from "../../shared/checkout";
import { clusterIp, inNetwork, type Place, podHere, podThere } from "./network";
import type { Listening, Probe, ProbeResult } from "./probe-agent";

/** The node itself is a place too, for its own processes. */
export type AgentName = Place | "node";

const dns = 5353;

const tcp = [8080, dns, 9153];

const udp = (...all: readonly { v4: string; v6: string }[]) =>
  all.flatMap(({ v4, v6 }) => [v4, v6].map((address) => ({ address, port: dns })));

const listening: Readonly<Record<AgentName, Listening>> = {
  "pod-a": { tcp, udp: udp(podHere(2)) },
  "pod-b": { tcp, udp: udp(podHere(3)) },
  client: { tcp: [], udp: [] },
  far: { tcp, udp: udp(podThere(4)) },
  outside: { tcp: [], udp: [] },
  internet: { tcp: [80, 81, 3868], udp: [{ address: clusterIp(10).v4, port: 80 }] },
  // On a NodePort's number too, for where no rule takes it.
  node: { tcp: [8081, 30080], udp: [] },
};

/** It is answered as soon as the program runs. */
const noConnections: Probe = {
  address: "",
  port: 0,
  protocol: "tcp",
  source: null,
  count: 0,
  concurrency: 0,
  timeoutMs: 0,
};

/** A probe agent in each network namespace, and one for the node. */
export class Agents {
  private constructor(
    private readonly programs: ReadonlyMap<AgentName, readonly [ChildProcess, Interface]>,
  ) {}

  static async start(places = Object.keys(listening) as AgentName[]): Promise<Agents> {
    const programs = places.map((place) => {
      const [command = "", ...args] = [
        ...(place === "node" ? [] : ["nsenter", inNetwork(place)]),
        process.execPath,
        ...[...loadTypeScript, join(__dirname, "probe-agent.ts"), JSON.stringify(listening[place])],
      ];
      const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
      child.once("exit", (code) => {
        throw new Error(`the program in ${place} ended with ${code}`);
      });
      return [place, [child, createInterface({ input: child.stdout })]] as const;
    });
    const agents = new Agents(new Map(programs));
    await Promise.all(programs.map(([place]) => agents.probe(place, noConnections)));
    return agents;
  }

  async probe(place: AgentName, options: Probe): Promise<ProbeResult> {
    const [child, lines] = this.programs.get(place) ?? [];
    if (!child?.stdin || !lines) throw new Error(`no program runs in ${place}`);
    child.stdin.write(`${JSON.stringify(options)}\n`);
    const [line] = (await once(lines, "line")) as [string];
    return JSON.parse(line) as ProbeResult;
  }
}
