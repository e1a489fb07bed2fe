import type { Answer } from "../../../../../trace/model/answer";
import { parse } from "../../../../../trace/read/nftables/parse";
import type { Packet } from "../../../../../trace/model/packet";
import { trace } from "../../../../../trace/evaluate/trace";
import { nothing } from "../../../../support/trace/example";
import { kubeProxyTable } from "../../../../support/trace/nftables-example";
import type { Version } from "../../../../support/trace/nftables-example-services";

/** 10.180.0.1 as fd00::10:180:0:1; a prefix counts from there. */
const address = (text: string): string => `fd00::${text.split(".").join(":")}`;

/** The same table for IPv6, as kube-proxy writes it beside the other. */
function inIpv6(table: string): string {
  return table
    .replace(/ip daddr != 127\.0\.0\.0\/8/g, "ip6 daddr != ::1")
    .replace(/203\.0\.113\.0\/25/g, "fd00::203:0:113:0/118")
    .replace(
      /(\d+\.\d+\.\d+\.\d+)\/(\d+)(?!\/| \{|\d)/g,
      (whole, network: string, length: string) =>
        Number(length) <= 32 && Number(length) % 8 === 0 && network.endsWith(".0")
          ? `${address(network)}/${String(64 + Number(length) * 2)}`
          : whole,
    )
    .replace(
      /dnat to (\d+\.\d+\.\d+\.\d+):(\d+)/g,
      (_, to: string, port: string) => `dnat to [${address(to)}]:${port}`,
    )
    .replace(/__(\d+\.\d+\.\d+\.\d+)\//g, (_, to: string) => `__${address(to).replace(/:/g, ".")}/`)
    .replace(/\b\d+\.\d+\.\d+\.\d+\b/g, address)
    .replace(/\bip (saddr|daddr|to|kube-proxy)/g, "ip6 $1")
    .replace(/ipv4_addr/g, "ipv6_addr");
}

function ask(
  version: Version,
  from: Packet["from"],
  source: string,
  to: string,
  port = 80,
): Answer {
  // Both tables are there: that of the other family has nothing to say.
  const nftables = parse(kubeProxyTable(version) + inIpv6(kubeProxyTable(version)), "nft.txt", 1);
  const dump = { ...nothing, nftables };
  return trace(dump, {
    from,
    source: address(source),
    destination: address(to),
    port,
    protocol: "tcp",
  });
}

describe.each(["1.33", "1.36"] as const)("kube-proxy %s over IPv6", (version) => {
  it("shares a cluster IP out, and masquerades a pod that reaches itself", () => {
    const { verdict, endpoints, masquerade } = ask(version, "pod", "10.180.0.1", "172.30.0.41");
    expect({ verdict, masquerade }).toEqual({ verdict: "dnat", masquerade: "unknown" });
    expect(endpoints.map((each) => [each.address, each.masquerade])).toEqual([
      ["[fd00::10:180:0:1]:80", true],
      ["[fd00::10:180:0:2]:80", false],
      ["[fd00::10:180:0:3]:8080", false],
    ]);
  });

  it("masquerades, rejects, drops and passes as over IPv4", () => {
    expect(ask(version, "outside", "203.0.113.9", "172.30.0.41").masquerade).toBe(true);
    expect(ask(version, "pod", "10.9.9.9", "172.30.0.46").verdict).toBe("reject");
    expect(ask(version, "pod", "10.9.9.9", "172.30.0.41", 81).verdict).toBe("reject");
    expect(ask(version, "pod", "10.9.9.9", "172.30.7.7").verdict).toBe("drop");
    expect(ask(version, "outside", "203.0.113.9", "1.2.3.4").verdict).toBe("drop");
    expect(ask(version, "outside", "203.0.113.9", "5.6.7.8").verdict).toBe("dnat");
    expect(ask(version, "outside", "198.51.100.9", "5.6.7.8").verdict).toBe("drop");
    expect(ask(version, "outside", "203.0.113.9", "192.168.0.2", 30003)).toMatchObject({
      verdict: "dnat",
      masquerade: true,
    });
    expect(ask(version, "pod", "10.9.9.9", "198.51.100.1").verdict).toBe("pass");
  });
});
