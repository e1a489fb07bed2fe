import { createHash } from "node:crypto";

import { run } from "../../../../shared/run";
import { azureServices } from "./azure-services";
import type { Plug, VirtualNetwork } from "./network-view";
import { firewall, markOf, outside, platformAddress } from "./ruleset";

/** What the simulated internet has of its own, in the range that benchmarks of networks use. */
export const operatorAddress = "198.18.0.1";
export const mirrorAddress = "198.18.1.1";

export const metadataAddress = "169.254.169.254";

/** The two ends of every virtual network's link to the internet. */
const near = "100.64.0.2";
const far = "100.64.0.1";

interface Link {
  readonly ifname: string;
}

/** The namespaces of one state folder: one for the internet, one for each virtual network. */
export class Namespaces {
  private readonly stem: string;

  constructor(state: string) {
    this.stem = `zoned-${createHash("sha256").update(state).digest("hex").slice(0, 8)}`;
  }

  get internet(): string {
    return `${this.stem}-internet`;
  }

  of = (network: string): string => `${this.stem}-${network}`;

  /** A command that runs inside. */
  within = (namespace: string, command: readonly string[]): string[] => [
    ...["ip", "netns", "exec", namespace],
    ...command,
  ];

  /** Those of this state folder that are there, also of a process that was killed. */
  async existing(): Promise<string[]> {
    const text = await run(["ip", "-json", "netns", "list"]);
    const all = (text.trim() === "" ? [] : JSON.parse(text)) as { name: string }[];
    return all.map(({ name }) => name).filter((name) => name.startsWith(`${this.stem}-`));
  }

  async ensureInternet(): Promise<void> {
    if ((await this.existing()).includes(this.internet)) return;
    await this.add(this.internet);
    const services = Object.values(azureServices).map(({ address }) => address);
    const addresses = [operatorAddress, mirrorAddress, firewall.address, ...services];
    await this.ip(
      this.internet,
      addresses.map((address) => `address add ${address}/32 dev lo`),
    );
  }

  /** Makes a network's bridges and its link to the internet what they are to be. */
  async shape(network: VirtualNetwork): Promise<void> {
    const namespace = this.of(network.key);
    const link = `v${network.key}`;
    if (!(await this.existing()).includes(namespace)) {
      await this.add(namespace);
      await this.ip(this.internet, [
        `link add ${link} type veth peer name ${outside} netns ${namespace}`,
        `address add ${far}/32 dev ${link}`,
        `link set ${link} up`,
      ]);
      await this.ip(namespace, [
        `address add ${platformAddress}/32 dev lo`,
        `address add ${metadataAddress}/32 dev lo`,
        `address add ${near}/32 dev ${outside}`,
        `link set ${outside} up`,
        `route add default via ${far} dev ${outside} onlink`,
      ]);
    }
    const present = await this.links(namespace);
    const added = network.subnets.filter(({ bridge }) => !present.includes(bridge));
    const wanted = network.subnets.map(({ bridge }) => bridge);
    await this.ip(namespace, [
      ...present
        .filter((name) => /^s[0-9a-f]{8}$/.test(name) && !wanted.includes(name))
        .map((name) => `link delete ${name}`),
      ...added.flatMap(({ bridge, gateway, prefix }) => [
        `link add ${bridge} type bridge forward_delay 0`,
        `address add ${gateway}/${prefix.split("/")[1]} dev ${bridge}`,
        `link set ${bridge} up`,
      ]),
    ]);
    // As on Azure, the network answers for every address of a subnet, and all that its machines send
    // each other passes their security groups and balancers.
    await this.set(
      namespace,
      added.flatMap(({ bridge }) => [
        `net.ipv4.conf.${bridge}.proxy_arp_pvlan=1`,
        `net.ipv4.neigh.${bridge}.proxy_delay=0`,
      ]),
    );
    await this.route(link, network.destinations);
    await this.routeMarks(namespace, network);
  }

  /** The socket that a machine's cable goes into. */
  async plug({ network, tap, subnet }: Plug): Promise<void> {
    const namespace = this.of(network);
    const present = await this.links(namespace);
    await this.ip(namespace, [
      ...(present.includes(tap) ? [] : [`tuntap add dev ${tap} mode tap`]),
      `link set ${tap} master ${subnet.bridge}`,
      `link set ${tap} type bridge_slave isolated on`,
      `link set ${tap} up`,
    ]);
  }

  async unplug({ network, tap }: Plug): Promise<void> {
    const namespace = this.of(network);
    if (!(await this.existing()).includes(namespace)) return;
    if ((await this.links(namespace)).includes(tap))
      await this.ip(namespace, [`link delete ${tap}`]);
  }

  /** Takes namespaces away, and with them every interface and rule in them. */
  async remove(namespaces: readonly string[]): Promise<void> {
    for (const name of namespaces) await run(["ip", "netns", "delete", name]);
  }

  private async route(link: string, destinations: readonly string[]): Promise<void> {
    const text = await run(["ip", "-n", this.internet, "-json", "route", "show", "dev", link]);
    const routes = (text.trim() === "" ? [] : JSON.parse(text)) as { dst: string }[];
    const present = routes.map(({ dst }) => dst);
    await this.ip(this.internet, [
      ...present
        .filter((one) => !destinations.includes(one))
        .map((one) => `route delete ${one} dev ${link}`),
      ...destinations
        .filter((one) => !present.includes(one))
        .map((one) => `route add ${one} via ${near} dev ${link} onlink`),
    ]);
  }

  /** Leads packets that have a machine's mark to that machine, whatever address they are for. */
  private async routeMarks(namespace: string, { balanced }: VirtualNetwork): Promise<void> {
    const text = await run(["ip", "-n", namespace, "-json", "rule", "show"]);
    const rules = JSON.parse(text) as { fwmark?: string; table: string }[];
    const present = rules.filter(({ fwmark }) => fwmark !== undefined).map(({ table }) => table);
    const floating = balanced.filter(({ isFloating }) => isFloating);
    const machines = [...new Set(floating.flatMap(({ backends }) => backends))];
    const marks = machines.map((address) => String(markOf(address)));
    await this.ip(namespace, [
      ...present
        .filter((table) => !marks.includes(table))
        .flatMap((table) => [`rule delete table ${table}`, `route flush table ${table}`]),
      ...machines.map((address) => `route replace default via ${address} table ${markOf(address)}`),
      ...marks
        .filter((mark) => !present.includes(mark))
        .map((mark) => `rule add fwmark ${mark} lookup ${mark}`),
    ]);
  }

  private async add(namespace: string): Promise<void> {
    await run(["ip", "netns", "add", namespace]);
    await this.ip(namespace, ["link set lo up"]);
    const settings = [
      "net.ipv4.ip_forward=1",
      "net.ipv4.conf.all.send_redirects=0",
      "net.ipv4.conf.default.send_redirects=0",
      "net.ipv4.conf.all.rp_filter=0",
      "net.ipv4.conf.default.rp_filter=0",
      "net.ipv6.conf.all.disable_ipv6=1",
      "net.ipv6.conf.default.disable_ipv6=1",
      // Where the kernel has it, a bridge would translate addresses itself, and not route what it did.
      "net.bridge.bridge-nf-call-iptables=0",
    ];
    await this.set(namespace, settings);
  }

  private async set(namespace: string, settings: readonly string[]): Promise<void> {
    if (settings.length === 0) return;
    await run(this.within(namespace, ["sysctl", "--ignore", "--quiet", "--write", ...settings]));
  }

  private async links(namespace: string): Promise<string[]> {
    const text = await run(["ip", "-n", namespace, "-json", "link", "show"]);
    return (JSON.parse(text) as Link[]).map(({ ifname }) => ifname);
  }

  private async ip(namespace: string, lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    await run(["ip", "-n", namespace, "-batch", "-"], { input: `${lines.join("\n")}\n` });
  }
}
