import { coloursFor, plain, words } from "../commands/words";
import { answerOf } from "./support/formats";

it("shows the hooks in the order in which the kernel calls them, with the rules below each", () => {
  const lines = words(answerOf(2), plain).split("\n");

  const titles = lines.filter((line) => / · /.test(line));
  expect(titles).toEqual(["prerouting · nat", "forward · filter", "postrouting · nat"]);
  expect(lines).toContain("  KUBE-SERVICES  -d 10.96.0.41/32 -j KUBE-SVC-A");
  expect(lines).toContain("    → goes on in KUBE-SVC-A");
});

it("finds the hook in the name of a base chain of nftables, and in no chain of a Service", () => {
  const table = "ip kube-proxy";
  const steps = [
    { table, chain: "nat-prerouting", rule: "jump services", effect: "goes on" },
    { table, chain: "service-AAAAAAAA-default/output/tcp/", rule: "numgen", effect: "picks" },
    { table, chain: "filter-forward", rule: "ct state new", effect: "goes on" },
  ];

  const text = words(answerOf(1, { mode: "nftables", steps }), plain);

  expect(text.match(/^.* · .*$/gm)).toEqual([
    "prerouting · ip kube-proxy",
    "forward · ip kube-proxy",
  ]);
});

it("shows the hook from kube-proxy's own chain where the built-in one is not shown", () => {
  const steps = [{ table: "nat", chain: "KUBE-POSTROUTING", rule: "-j RETURN", effect: "returns" }];

  expect(words(answerOf(1, { steps }), plain)).toContain("postrouting · nat");
});

it("gives each endpoint its share, and says what differs between them", () => {
  const endpoints = [
    { address: "10.244.1.6:80", probability: 0.5, masquerade: true },
    { address: "10.244.2.4:8080", probability: 0.5, masquerade: false },
  ];

  const text = words(answerOf(2, { endpoints, masquerade: "unknown" }), plain);

  expect(text).toMatch(/^ {2}10\.244\.1\.6:80 {4}1\/2 +50\.00 % {2}masqueraded$/m);
  expect(text).toMatch(/^ {2}10\.244\.2\.4:8080 {2}1\/2 +50\.00 % {2}not masqueraded$/m);
  expect(text).toContain("the source is masqueraded for some endpoints");
});

it("ends with the verdict and its reason", () => {
  const text = words(answerOf(0, { verdict: "reject", reason: "It has no endpoints." }), plain);

  expect(text).toMatch(/\n\nreject {2}It has no endpoints\.\n$/);
});

it("says how long a client stays with its endpoint", () => {
  expect(words(answerOf(1, { affinitySeconds: 10_800 }), plain)).toContain("for 10800 s");
});

it("has colours on a terminal only, and none where NO_COLOR asks for none", () => {
  expect(coloursFor({ isTTY: true }, {}).bold("x")).not.toBe("x");
  expect(coloursFor({}, {}).bold("x")).toBe("x");
  expect(coloursFor({ isTTY: true }, { NO_COLOR: "1" }).bold("x")).toBe("x");
  expect(coloursFor({ isTTY: true }, { TERM: "dumb" }).bold("x")).toBe("x");
});
