import type { Answer, Packet } from "../../../model/packet";
import { parse } from "../../../read/nftables/parse";
import { trace } from "../../../evaluate/trace";
import { nothing } from "../../support/example";
import { kubeProxyTable, type Version } from "../../support/nftables-example";

/** That of today is in the golden dumps. */
const versions: readonly Version[] = ["1.29", "1.33", "1.34"];

/** The node's addresses, as `ip addr` prints them. */
const addresses = {
  file: "ip.txt",
  interfaces: [
    { name: "lo", addresses: [{ address: "127.0.0.1", prefix: 8 }] },
    { name: "eth0", addresses: [{ address: "192.168.0.2", prefix: 24 }] },
  ],
};

function ask(version: Version, from: Packet["from"], source: string | null, to: string): Answer {
  const [destination = "", port] = to.split(":");
  const nftables = parse(kubeProxyTable(version), "nft.txt", 1);
  const packet: Packet = { from, source, destination, port: Number(port), protocol: "tcp" };
  return trace({ ...nothing, nftables, addresses }, packet);
}

const shown = ({ verdict, endpoints, masquerade }: Answer): string =>
  [verdict, endpoints.map((each) => each.address).join(" "), String(masquerade)].join(" | ");

describe.each(versions)("kube-proxy %s in nftables mode", (version) => {
  it("sends a pod to each endpoint with the same chance, unmasqueraded", () => {
    const { verdict, endpoints, masquerade, mode } = ask(
      version,
      "pod",
      "10.9.9.9",
      "172.30.0.41:80",
    );
    expect({ verdict, masquerade, mode }).toEqual({
      verdict: "dnat",
      masquerade: false,
      mode: "nftables",
    });
    expect(endpoints.map((each) => each.address)).toEqual([
      "10.180.0.1:80",
      "10.180.0.2:80",
      "10.180.0.3:8080",
    ]);
    endpoints.forEach((each) => expect(each.probability).toBeCloseTo(1 / 3, 9));
  });

  it("masquerades who is not a pod on the way to a cluster IP", () => {
    expect(ask(version, "outside", "203.0.113.9", "172.30.0.41:80").masquerade).toBe(true);
    expect(ask(version, "node", null, "172.30.0.41:80").masquerade).toBe(true);
  });

  it("masquerades a pod that reaches itself, and only then", () => {
    const { masquerade, endpoints } = ask(version, "pod", "10.180.0.1", "172.30.0.41:80");
    expect(masquerade).toBe("unknown");
    expect(endpoints.map((each) => each.masquerade)).toEqual([true, false, false]);
  });

  it("rejects what has no endpoints, at cluster and external IPs", () => {
    expect(ask(version, "pod", "10.9.9.9", "172.30.0.46:80").verdict).toBe("reject");
    expect(ask(version, "node", null, "172.30.0.46:80").verdict).toBe("reject");
    expect(ask(version, "outside", "203.0.113.9", "1.2.3.6:80").verdict).toBe("reject");
  });

  it("drops clients from outside where the policy is Local and no endpoint is", () => {
    expect(ask(version, "outside", "203.0.113.9", "1.2.3.4:80").verdict).toBe("drop");
    expect(ask(version, "outside", "203.0.113.9", "192.168.0.2:30001").verdict).toBe("drop");
  });

  it("takes a pod past a Local policy without masquerading it", () => {
    expect(shown(ask(version, "pod", "10.9.9.9", "1.2.3.4:80"))).toBe(
      "dnat | 10.180.1.2:80 | false",
    );
  });

  it("masquerades everybody at a NodePort with policy Cluster", () => {
    expect(shown(ask(version, "outside", "203.0.113.9", "192.168.0.2:30003"))).toBe(
      "dnat | 10.180.0.3:80 | true",
    );
    expect(shown(ask(version, "pod", "10.9.9.9", "192.168.0.2:30003"))).toBe(
      "dnat | 10.180.0.3:80 | true",
    );
  });

  it("has no NodePorts on 127.0.0.1", () => {
    expect(ask(version, "node", null, "127.0.0.1:30003").verdict).toBe("pass");
  });

  it("drops who is outside the source ranges of a load balancer, but not at its NodePort", () => {
    expect(ask(version, "outside", "203.0.113.9", "5.6.7.8:80").verdict).toBe("dnat");
    expect(ask(version, "outside", "203.0.113.200", "5.6.7.8:80").verdict).toBe("drop");
    expect(ask(version, "node", "192.168.0.2", "5.6.7.8:80").verdict).toBe("drop");
    expect(ask(version, "outside", "203.0.113.200", "192.168.0.2:30005").verdict).toBe("dnat");
  });

  it("recognises session affinity by the set that remembers clients", () => {
    expect(ask(version, "pod", "10.9.9.9", "172.30.0.45:80").affinitySeconds).toBe(10800);
    expect(ask(version, "pod", "10.9.9.9", "172.30.0.41:80").affinitySeconds).toBeNull();
  });

  it("passes what is no Service", () => {
    expect(ask(version, "pod", "10.9.9.9", "198.51.100.1:443").verdict).toBe("pass");
  });
});

it.each([
  ["1.29", "pass"],
  ["1.33", "reject"],
] as const)("an undefined port of a cluster IP: kube-proxy %s %ss it", (version, verdict) => {
  expect(ask(version, "pod", "10.9.9.9", "172.30.0.41:81").verdict).toBe(verdict);
  expect(ask(version, "node", null, "172.30.0.41:81").verdict).toBe(verdict);
});

it("drops what goes to a cluster IP that no Service has", () => {
  expect(ask("1.33", "pod", "10.9.9.9", "172.30.7.7:80").verdict).toBe("drop");
});

it.each([
  ["1.33", "drop"],
  ["1.34", "dnat"],
] as const)(
  "the node to a Local load balancer without local endpoints: %s by the priorities of %s",
  (version, verdict) => {
    expect(ask(version, "node", "192.168.0.2", "1.2.3.4:80").verdict).toBe(verdict);
  },
);

it("a client that the affinity set of an endpoint holds goes there", () => {
  const set = "affinity-ABCDEFGH-ns5/sticky/tcp/http__10.180.0.5/80 {";
  const text = kubeProxyTable("1.33").replace(
    `${set}\n`,
    `${set}\n\t\telements = { 10.9.9.9 timeout 3h expires 2h }\n`,
  );
  const packet: Packet = {
    from: "pod",
    source: "10.9.9.9",
    destination: "172.30.0.45",
    port: 80,
    protocol: "tcp",
  };
  const nftables = parse(text, "nft.txt", 1);
  expect(shown(trace({ ...nothing, nftables, addresses }, packet))).toBe(
    "dnat | 10.180.0.5:80 | false",
  );
  const anybody = trace({ ...nothing, nftables, addresses }, { ...packet, source: null });
  expect(anybody.endpoints).toHaveLength(2);
  expect(anybody.notes.join(" ")).toMatch(/not in affinity-ABCDEFGH/);
});
