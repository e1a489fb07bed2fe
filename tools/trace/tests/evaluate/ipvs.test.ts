import { ask, brief, nodeOf } from "../support/example";
import { ipAddr, ipsetSave, iptablesSave, ipvsadm } from "../support/iptables-example";

const node = nodeOf(iptablesSave, ipsetSave, ipvsadm, ipAddr);
const halves = "10.244.1.5:8080=0.5 10.244.2.5:8080=0.5";

describe("IPVS mode", () => {
  it.each([
    ["to a cluster IP, masqueraded", "10.96.0.20:80", `dnat ${halves} masquerade=true`],
    ["to a load balancer that has ranges", "203.0.113.13:80", "drop"],
  ])("takes the node's own packet %s, whatever its address", (_, to, expected) => {
    expect(brief(ask(node, `node - > ${to}`))).toBe(expected);
  });

  it("takes a forwarded client's packet through input, IPVS, output and postrouting", () => {
    const { mode, steps } = ask(node, "outside 192.0.2.9 > 10.96.0.20:80");
    const base = steps
      .filter(({ chain, table }) => table === "ipvs" || /^[A-Z]+$/.test(chain))
      .map(({ table, chain }) => (table === "ipvs" ? table : `${table} ${chain}`));

    expect(mode).toBe("ipvs");
    expect([...new Set(base)]).toEqual([
      "nat PREROUTING",
      "filter INPUT",
      "ipvs",
      "filter OUTPUT",
      "nat POSTROUTING",
    ]);
  });

  it("says how long a client stays", () => {
    expect(ask(node, "pod 10.244.1.9 > 10.96.0.21:80").affinitySeconds).toBe(10800);
    expect(ask(node, "pod 10.244.1.9 > 10.96.0.20:80").affinitySeconds).toBeNull();
  });

  it("warns where the policy is Local and no endpoint is", () => {
    const notes = (question: string) => ask(node, question).notes.join("\n");

    expect(notes("outside 192.0.2.9 > 203.0.113.12:80")).toContain(
      "none of the endpoints is on this node",
    );
    expect(notes("outside 192.0.2.9 > 192.0.2.1:30082")).not.toContain("none of the endpoints");
  });

  it.each([
    ["rr", "gets no new ones"],
    ["sh", "whose hash gives it are rejected"],
    ["sh (sh-fallback)", "gets no new ones"],
  ])("says what becomes of a drained real server with %s", (scheduler, expected) => {
    const drained = ipvsadm
      .replace("10.96.0.20:80 rr", `10.96.0.20:80 ${scheduler}`)
      .replace("10.244.1.5:8080              Masq    1", "10.244.1.5:8080              Masq    0");
    const answer = ask(
      nodeOf(iptablesSave, ipsetSave, drained, ipAddr),
      "pod 10.244.1.9 > 10.96.0.20:80",
    );

    expect(brief(answer)).toBe("dnat 10.244.2.5:8080=1 masquerade=false");
    expect(answer.notes.join("\n")).toContain(expected);
  });

  it("masquerades the node by its virtual source where kube-proxy knows no pods' range, and no pod", () => {
    const unaware = iptablesSave.replace(
      /! -s 10\.244\.0\.0\/16 (.*KUBE-CLUSTER-IP) dst,dst/,
      "$1 src,dst",
    );
    const masquerade = (from: string) =>
      ask(nodeOf(unaware, ipsetSave, ipvsadm, ipAddr), `${from} > 10.96.0.20:80`).masquerade;

    expect([masquerade("node -"), masquerade("pod -"), masquerade("pod 10.244.1.9")]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("sends to a real server of its own without postrouting, so unmasked whatever the mark", () => {
    const own = ipvsadm
      .replace("10.244.1.5:8080 ", "192.0.2.1:6443 ")
      .replace("10.244.2.5:8080 ", "192.0.2.1:6443 ");

    expect(
      brief(ask(nodeOf(iptablesSave, ipsetSave, own, ipAddr), "outside 192.0.2.9 > 10.96.0.20:80")),
    ).toBe("dnat 192.0.2.1:6443=1 masquerade=false");
  });

  it("cannot say what a set decides that is in no dump", () => {
    const answer = ask(nodeOf(iptablesSave, ipvsadm, ipAddr), "outside 192.0.2.9 > 10.96.0.20:80");

    expect(answer.verdict).toBe("unknown");
    expect(answer.reason).toMatch(/KUBE-[A-Z-]+/);
  });

  it("serves a firewall mark before an address", () => {
    const marked = iptablesSave.replace(
      "-A KUBE-SERVICES -s",
      "-A PREROUTING -d 192.0.2.1/32 -p tcp -m tcp --dport 8443 -j MARK --set-xmark 0x7/0xffffffff\n-A KUBE-SERVICES -s",
    );
    const server = `${ipvsadm}FWM  7 wrr\n  -> 10.244.1.5:0                 Masq    3      0          0\n  -> 10.244.2.5:0                 Masq    1      0          0\n`;

    expect(
      brief(ask(nodeOf(marked, ipsetSave, server, ipAddr), "outside 192.0.2.9 > 192.0.2.1:8443")),
    ).toBe("dnat 10.244.1.5:8443=0.75 10.244.2.5:8443=0.25 masquerade=false");
  });
});
