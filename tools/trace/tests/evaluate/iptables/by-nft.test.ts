import { nodeDump } from "../../../read/read-dumps";
import { ask, brief } from "../../support/example";
import { goldenDumps } from "../../support/kube-proxy/golden-dumps";

const node = nodeDump(
  goldenDumps("iptables").filter(({ file }) => /^(nft list ruleset|ip address)$/.test(file)),
);

/** A node in iptables mode of which only `nft list ruleset` was taken. */
describe("iptables' rules as nft lists them", () => {
  it.each([
    [
      "pod - > 10.96.0.10:80",
      "dnat 10.244.1.2:8080=0.3333 10.244.1.3:8080=0.3333 10.244.2.4:8080=0.3333 masquerade=false",
    ],
    ["pod 10.244.1.2 > 10.96.0.12:80", "dnat 10.244.1.2:8080=1 masquerade=true"],
    [
      "outside 192.0.2.200 > 192.0.2.1:30081",
      "dnat 10.244.1.2:8080=0.5 10.244.1.3:8080=0.5 masquerade=false",
    ],
    ["pod 10.244.1.9 > 10.96.0.30:80", "reject"],
  ])("are walked: %s", (question, expected) => {
    expect(brief(ask(node, question))).toBe(expected);
  });

  it("are not taken for rules without a target where nft has no words for it", () => {
    const { verdict, reason } = ask(node, "pod fd00:10:244:1::9 > [fd00:10:96::11]:9153");

    expect(verdict).toBe("unknown");
    expect(reason).toContain("KUBE-SEP-");
  });

  it("are said not to be all that iptables has", () => {
    const { notes } = ask(node, "outside 192.0.2.200 > [fd00:10:96::12]:80");

    expect(notes.join("\n")).toContain("nft does not show all that its rules ask");
  });
});
