import { UserError } from "../../shared/user-error";
import type { NodeDump } from "../model/dump";
import type { Iptables } from "../model/iptables";
import { canonical, type Destination, serviceName } from "../model/packet";
import { wordsIn } from "../read/iptables/rule";
import { isClusterAddress } from "./services";

/** Where a Service is reached, as a rule names it. */
interface ServiceAddress extends Destination {
  /** `namespace/name`. */
  readonly service: string;
  /** The port's name; empty for an unnamed one. */
  readonly portName: string;
  /** Whether it is the cluster IP. */
  readonly inside: boolean;
}

/**
 * Where `NAMESPACE/NAME[:PORT]` is reached: its cluster IPs, or where the dumps have none its other
 * addresses.
 */
export function findService(dump: NodeDump, text: string): Destination[] {
  const { namespace, name, port } = serviceName(text);
  const all = [...ofIptables(dump.iptables4), ...ofIptables(dump.iptables6), ...ofNftables(dump)];
  const own = all.filter((way) => way.service === `${namespace}/${name}`);
  const asked = own.filter(
    (way) => port === null || way.portName === port || String(way.port) === port,
  );
  if (asked.length === 0) throw notFound(text, dump, own);
  const inside = asked.filter((way) => way.inside);
  const found = new Map<string, Destination>();
  for (const { destination, port: number, protocol } of inside.length > 0 ? inside : asked) {
    found.set(`${destination} ${number} ${protocol}`, { destination, port: number, protocol });
  }
  return [...found.values()];
}

function notFound(text: string, dump: NodeDump, own: readonly ServiceAddress[]): UserError {
  if (own.length > 0) {
    const ports = [
      ...new Set(
        own.map((way) => (way.portName === "" ? `${way.port}` : `${way.portName} (${way.port})`)),
      ),
    ];
    return new UserError(
      `service: expected a port of it that the rules name, which are ${ports.join(", ")}, got "${text}"`,
      2,
    );
  }
  const ipvs =
    dump.ipvs === null
      ? ""
      : "; IPVS keeps no names of Services: ask with --to, or the cluster with --node";
  return new UserError(
    `service: expected one that a rule in the dumps names, got "${text}"${ipvs}`,
    2,
  );
}

const inComment =
  /^(\S+\/[^\s:]+)(?::(\S*))? (cluster IP|external IP|loadbalancer IP|has no endpoints|has no local endpoints)/;

function ofIptables(iptables: Iptables | null): ServiceAddress[] {
  if (iptables === null) return [];
  const chains = ["nat", "filter"].flatMap((table) =>
    ["KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES"].flatMap(
      (name) => iptables.tables.get(table)?.chains.get(name) ?? [],
    ),
  );
  return chains.flatMap((chain) =>
    chain.rules
      .filter((rule) => rule.text.includes("/"))
      .flatMap((rule) => {
        const words = wordsIn(rule, chain, iptables.file);
        const after = (option: string): string => words[words.indexOf(option) + 1] ?? "";
        const named = inComment.exec(after("--comment"));
        const destination = words.includes("-d")
          ? canonical(after("-d").replace(/\/(32|128)$/, ""))
          : null;
        if (named === null || destination === null || !words.includes("--dport")) return [];
        const inside = chain.name === "KUBE-SERVICES" && /cluster IP|no endpoints/.test(named[3]!);
        const protocol = after("-p") as ServiceAddress["protocol"];
        return [
          {
            service: named[1]!,
            portName: named[2] ?? "",
            destination,
            port: Number(after("--dport")),
            protocol,
            inside,
          },
        ];
      }),
  );
}

/**
 * `goto service-ABCDEFGH-namespace/name/tcp/port`; without endpoints only a comment has the name.
 */
const inVerdict =
  /(service|local|external|firewall)-[A-Z2-7]{8}-([^/\s"]+\/[^/\s"]+)\/\w+\/([^\s"]*)/;

/** `namespace/name:port`. */
const inElement = /^(\S+\/[^\s:]+)(?::(\S*))?/;

function ofNftables(dump: NodeDump): ServiceAddress[] {
  return ([4, 6] as const).flatMap((family) => {
    const sets = dump.nftables?.tables.get(family === 4 ? "ip kube-proxy" : "ip6 kube-proxy")?.sets;
    const elements = ["service-ips", "no-endpoint-services"].flatMap(
      (name) => sets?.get(name)?.elements() ?? [],
    );
    return elements.flatMap(
      ({ key: [address = "", protocol, port], value, comment }): ServiceAddress[] => {
        const destination = canonical(address);
        const [, kind, ...named] = inVerdict.exec(value ?? "") ?? [];
        const [, ...noted] = inElement.exec(comment ?? "") ?? [];
        const [service, portName = ""] = kind === undefined ? noted : named;
        if (destination === null || service === undefined) return [];
        const inside =
          kind === undefined
            ? isClusterAddress(dump, family, destination)
            : /^(service|local)$/.test(kind);
        return [
          {
            service,
            portName,
            destination,
            port: Number(port),
            protocol: protocol as ServiceAddress["protocol"],
            inside,
          },
        ];
      },
    );
  });
}
