import { pictureOf, type Seen, summaryOf } from "../picture/model";
import { draw } from "../picture/svg/draw";
import { widthOf } from "../picture/svg/shapes";
import {
  all,
  type Box,
  boxOf,
  type Element,
  frameOf,
  groupOf,
  isWithin,
  overlap,
  readSvg,
  titleOf,
  wordsOf,
} from "./support/read-svg";
import { claim, expose, type FakeSeen, healthy, problem, silence } from "./support/seen";

const drawn = (seen: FakeSeen): Element => readSvg(draw(pictureOf(seen as Seen)));
const summary = (seen: FakeSeen): string => summaryOf(pictureOf(seen as Seen));
const words = (element: Element): string => wordsOf(element).join("\n");

const vmOf = ({ azure }: FakeSeen, name: string) =>
  azure.machines.find((one) => one.name === name)!;
const nodeOf = ({ cluster }: FakeSeen, name: string) =>
  cluster.objects.nodes.find(({ metadata }) => metadata.name === name)!;

/** Everything that makes a picture hard to lay out, on ten machines. */
function crowded(): FakeSeen {
  const seen = healthy(7);
  for (let number = 1; number <= 5; number += 1) {
    expose(seen, `a-service-with-a-name-of-many-words-${number}`, `203.0.113.${40 + number}`, 8080);
  }
  for (const name of ["second", "third", "fourth", "fifth"]) {
    const copy = structuredClone(seen.azure.balancers[1]!);
    copy.properties.backendAddressPools![0]!.name = `${name}-pool-`.repeat(8).slice(0, 80);
    seen.azure.balancers.push({ ...copy, id: `${copy.id}-${name}`, name: `zoned-prod-${name}` });
  }
  claim(seen, "a-claim-with-a-name-that-is-far-too-long-for-a-card", "1", "zoned-prod-workers-1");
  claim(seen, "nobodys", "2");
  claim(seen, "everywhere", "");
  const sentence = "its Node is not Ready: Kubelet stopped posting node status. ".repeat(9);
  for (const { name } of seen.azure.machines) problem(seen, "Nodes", sentence, name);
  problem(seen, "etcd members", `${"x".repeat(300)} ${sentence}`);
  return seen;
}

it("draws each machine in its zone, with what Azure and Kubernetes say of it", () => {
  const svg = drawn(healthy());

  for (const zone of ["1", "2", "3"]) {
    const column = groupOf(svg, `Zone ${zone}`);
    const names = all(column, "g")
      .map((one) => titleOf(one).split("\n")[0]!)
      .filter((title) => /^zoned-prod-(cp|workers)-\d$/.test(title));
    expect(names).toEqual([`zoned-prod-cp-${zone}`, `zoned-prod-workers-${zone}`]);
    expect(words(column)).toContain(`subnet nodes-${zone}\n172.16.${zone}.0/24`);
    expect(words(column)).toContain(`NAT gateway zoned-prod-egress-${zone}\n203.0.113.1${zone}`);
  }
  expect(wordsOf(groupOf(svg, "zoned-prod-workers-2"))).toEqual([
    ...["zoned-prod-workers-2", "Ready", "VM running", "worker, pool workers", "Standard_D4s_v5"],
    ...["172.16.2.16", "v1.36.3", "OS disk", "64 GiB Premium_LRS"],
  ]);
  expect(words(svg)).toMatch(/^Stack prod\nhealthy\n.*zoned-prod.*kubelets v1\.36\.3.*22:15 UTC$/m);
  expect(words(svg)).toContain("Region southeastasia");
  expect(words(svg)).toContain("VNet zoned-prod-vnet 172.16.0.0/16");
  expect(words(svg)).toContain("subnet internal-balancers 172.16.0.0/24");
});

it("sums up in one line", () => {
  expect(summary(healthy())).toBe("6 machines, 3 zones, 1 load balancer, healthy");
});

it("does not call a cluster ill for what others have in its resource group", () => {
  const seen = healthy();
  expose(seen, "web", "203.0.113.40");
  const { azure } = seen;
  const [api] = azure.balancers as [(typeof azure.balancers)[number]];
  const theirs = structuredClone(api);
  const properties = {
    ...theirs.properties,
    backendAddressPools: [{ id: "/web", name: "web", properties: {} }],
  };
  azure.balancers.push({ ...theirs, name: "shop", properties });
  azure.machines.push({
    ...azure.machines[0]!,
    id: "/jumpbox",
    name: "jumpbox",
    power: "deallocated",
  });
  azure.group = "platform";
  api.tags = { "zoned-stack": "firm/zoned/prod" };

  const svg = drawn(seen);

  expect(words(svg)).toContain("\nhealthy\n");
  expect(wordsOf(groupOf(svg, "jumpbox"))).toContain("not of this stack");
  expect(wordsOf(groupOf(svg, "zoned-prod-workers-2"))).toContain("worker, pool workers");
});

describe("what is not healthy", () => {
  it("is marked on its machine by a word, a colour and the reason", () => {
    const seen = healthy();
    nodeOf(seen, "zoned-prod-workers-2").status!.conditions = [];
    problem(seen, "Nodes", "its Node is not Ready: no news", "zoned-prod-workers-2");

    const svg = drawn(seen);

    const card = groupOf(svg, "zoned-prod-workers-2");
    expect(wordsOf(card)).toEqual(
      expect.arrayContaining(["NotReady", "✗ its Node is not Ready: no news"]),
    );
    expect(all(card, "rect")[0]!.attributes["class"]).toContain("s-bad");
    expect(words(groupOf(svg, "zoned-prod-workers-1"))).not.toMatch(/✗|NotReady/);
    expect(wordsOf(svg)).toContain("not healthy: 1 problem");
  });

  it.each<[string, (seen: FakeSeen) => unknown, string[]]>([
    [
      "a VM that is off",
      (seen) => (vmOf(seen, "zoned-prod-workers-2").power = "deallocated"),
      ["VM deallocated", "✗ its VM is deallocated"],
    ],
    [
      "a VM that Azure could not make",
      (seen) => (vmOf(seen, "zoned-prod-workers-2").provisioningState = "Failed"),
      ["Ready, not healthy", "✗ Azure has failed to make or change its VM"],
    ],
    [
      "a bootstrap step that failed",
      (seen) => (vmOf(seen, "zoned-prod-workers-2").bootstrap = "Failed"),
      ["✗ its bootstrap step has failed"],
    ],
    [
      "a machine that has no Node",
      (seen) => seen.cluster.objects.nodes.splice(4, 1),
      ["no Node", "VM running"],
    ],
    [
      "a Node that is cordoned",
      (seen) => (nodeOf(seen, "zoned-prod-workers-2").spec = { unschedulable: true }),
      ["Ready, cordoned"],
    ],
    [
      "a machine that Azure has lost",
      (seen) => seen.azure.machines.splice(4, 1),
      ["no VM", "✗ the stack's outputs have it, and Azure has no such VM"],
    ],
    [
      "a VM that the stack does not have",
      (seen) => seen.cluster.report.machines.splice(4, 1),
      ["not of this stack"],
    ],
  ])("is said of %s", (_, change, says) => {
    const seen = healthy();
    change(seen);

    const card = groupOf(drawn(seen), "zoned-prod-workers-2");

    const lines = wordsOf(card).join(" ");
    for (const line of says) expect(lines).toContain(line);
  });

  it.each<[string, (seen: FakeSeen) => unknown, string]>([
    [
      "the cluster",
      (seen) => problem(seen, "etcd members", "2 of 3 are ready"),
      "✗ etcd members: 2 of 3 are ready",
    ],
    [
      "a Node without a machine",
      (seen) => problem(seen, "Nodes", "is no machine", "stranger"),
      "✗ stranger: is no machine",
    ],
    [
      "a Service that waits",
      ({ cluster }) =>
        cluster.objects.services.push({
          metadata: { name: "web", namespace: "default", uid: "1" },
          spec: { type: "LoadBalancer" },
        }),
      "✗ default/web: this Service waits for a load balancer",
    ],
    [
      "a pool that is empty",
      ({ azure }) => (azure.interfaces = []),
      "✗ zoned-prod-api: no machine is in its pool control-plane",
    ],
    [
      "a resource that Azure failed to make",
      ({ azure }) => (azure.gateways[0]!.properties.provisioningState = "Failed"),
      "✗ zoned-prod-egress-1: Azure has failed to make or change it",
    ],
  ])("is said above all else of %s", (_, change, says) => {
    const seen = healthy();
    change(seen);

    const svg = drawn(seen);

    expect(wordsOf(groupOf(svg, "not healthy: 1 problem"))).toEqual([says]);
  });
});

it("draws what Azure has where the API does not answer, and says so", () => {
  const seen = healthy();
  silence(seen);
  vmOf(seen, "zoned-prod-cp-1").power = "stopped";

  const svg = drawn(seen);

  expect(wordsOf(svg)).toContain("API does not answer: drawn is what Azure has");
  expect(words(svg)).toMatch(/✗ API: .*ECONNREFUSED/);
  expect(words(groupOf(svg, "zoned-prod-cp-1"))).toMatch(/Node not asked\nVM stopped/);
  expect(words(groupOf(svg, "zoned-prod-cp-2"))).toMatch(/Node not asked\nVM running/);
  expect(words(svg)).not.toMatch(/NotReady|no Node/);
});

describe("load balancers", () => {
  const cellsOf = (svg: Element, balancer: string) =>
    wordsOf(groupOf(svg, `load balancer ${balancer}`)).slice(7);

  it("have their rules with address, probe and pool, those of Services by their names", () => {
    const seen = healthy();
    expose(seen, "web", "203.0.113.40");
    expose(seen, "shop", "203.0.113.41", 443);

    const svg = drawn(seen);

    expect(cellsOf(svg, "zoned-prod-api").slice(0, 6)).toEqual([
      ...["api", "203.0.113.2", "public, zones 1 2 3"],
      ...["TCP 6443 → 6443", "HTTPS 6443/readyz", "control-plane"],
    ]);
    expect(cellsOf(svg, "zoned-prod").slice(0, 12)).toEqual([
      ...["default/web", "203.0.113.40", "public, zones 1 2 3"],
      ...["TCP 80, floating IP", "HTTP 10256/healthz", "zoned-prod"],
      ...["default/shop", "203.0.113.41", "public, zones 1 2 3"],
      ...["TCP 443, floating IP", "HTTP 10256/healthz", "zoned-prod"],
    ]);
  });

  it("have lines to exactly the machines in their pools, by interface and by address", () => {
    const seen = healthy();
    expose(seen, "web", "203.0.113.40");

    const svg = drawn(seen);

    for (const [lane, members] of [
      ["zoned-prod-api, pool control-plane", "zoned-prod-cp"],
      ["zoned-prod, pool zoned-prod", "zoned-prod-workers"],
    ]) {
      const names = ["1", "2", "3"].map((number) => `${members}-${number}`);
      const ends = all(groupOf(svg, `${lane}: ${names.join(", ")}`), "circle").map(
        ({ attributes }) => ({ x: Number(attributes["cx"]), y: Number(attributes["cy"]) }),
      );
      const reached = seen.azure.machines.filter(({ name }) => {
        const { left, top, bottom } = frameOf(groupOf(svg, name));
        return ends.some(({ x, y }) => x === left && y > top && y < bottom);
      });
      expect(reached.map(({ name }) => name)).toEqual(names);
      expect(ends).toHaveLength(names.length);
    }
  });

  it("may be private, or have no rule", () => {
    const seen = healthy();
    const { properties } = seen.azure.balancers[0]!;
    properties.frontendIPConfigurations![0]!.properties = { privateIPAddress: "172.16.0.5" };
    properties.loadBalancingRules = [];

    expect(cellsOf(drawn(seen), "zoned-prod-api").slice(0, 4)).toEqual([
      ...["api", "172.16.0.5", "private", "no rule"],
    ]);
  });
});

it("draws volumes at the machine that has them, and others in their zone", () => {
  const seen = healthy();
  claim(seen, "data", "2", "zoned-prod-workers-2");
  claim(seen, "kept", "3");
  claim(seen, "everywhere", "");
  seen.cluster.objects.volumes[1]!.status = { phase: "Released" };

  const svg = drawn(seen);

  expect(words(groupOf(svg, "zoned-prod-workers-2"))).toContain("default/data\n8 GiB Premium_LRS");
  expect(words(groupOf(svg, "Zone 3"))).toContain(
    "Disks attached to no machine\ndefault/kept (Released)\n8 GiB Premium_LRS",
  );
  expect(words(svg).match(/default\/(data|kept)/g)).toHaveLength(2);
  expect(words(svg)).toContain("disk default/everywhere, attached to no machine");
});

it("names public addresses that nothing has", () => {
  const seen = healthy();
  seen.azure.addresses.push({
    ...{ id: "/left", name: "left", zones: [], properties: { ipAddress: "203.0.113.99" } },
  });

  expect(words(drawn(seen))).toContain("public address left\n203.0.113.99  no zone, not attached");
  expect(words(drawn(healthy()))).not.toContain("public address");
});

it("writes every name as it is, whatever it has", () => {
  const seen = healthy();
  const nasty = `<script>&"'\u0007`;
  seen.stack = nasty;
  expose(seen, nasty, "203.0.113.40");
  seen.azure.machines[0]!.name = nasty;
  problem(seen, "Nodes", nasty, nasty);
  problem(seen, nasty, nasty);

  const svg = drawn(seen);

  expect(words(svg)).toContain(`Stack <script>&"'`);
  expect(words(svg)).toContain(`default/<script>&"'`);
  expect(all(svg, "script")).toEqual([]);
});

describe("a crowded picture", () => {
  const seen = crowded();
  const svg = drawn(seen);
  const cards = seen.azure.machines.map(({ name }) => groupOf(svg, name));
  const textBox = ({ attributes, text }: Element): Box => {
    const classes = attributes["class"]!.split(" ");
    const size = Number(attributes["font-size"]);
    const font = { size, bold: classes.includes("bold"), mono: classes.includes("mono") };
    const width = widthOf(text, font);
    const x = Number(attributes["x"]) - (attributes["text-anchor"] === "end" ? width : 0);
    const y = Number(attributes["y"]);
    return { left: x, right: x + width, top: y - size * 0.8, bottom: y + size * 0.2 };
  };
  const page: Box = { left: 0, top: 0, right: 1200, bottom: Number(svg.attributes["height"]) };

  it("has all cards beside and below each other", () => {
    const frames = [
      ...cards.map(frameOf),
      ...seen.azure.balancers.map(({ name }) => frameOf(groupOf(svg, `load balancer ${name}`))),
    ];
    const pairs = frames.flatMap((one, index) =>
      frames.slice(index + 1).map((other) => [one, other] as const),
    );

    expect(pairs.filter(([one, other]) => overlap(one, other))).toEqual([]);
    expect(
      all(svg, "rect")
        .map(boxOf)
        .filter((one) => one.right > 1200),
    ).toEqual([]);
  });

  it("has all words within their cards and the page, and none on another", () => {
    const texts = all(svg, "text").map((one) => ({ text: one.text, box: textBox(one) }));

    expect(texts.filter(({ box }) => !isWithin(box, page))).toEqual([]);
    for (const card of cards) {
      const frame = frameOf(card);
      const inside = all(card, "text").map(textBox);
      expect(inside.filter((one) => !isWithin(one, frame))).toEqual([]);
    }
    const onAnother = texts.filter(({ box }, index) =>
      texts.slice(index + 1).some((other) => overlap(box, other.box)),
    );
    expect(onAnother).toEqual([]);
  });

  it("has no line through words", () => {
    const texts = all(svg, "text").map(textBox);
    const lines = all(svg, "path").flatMap(({ attributes }): Box[] => {
      const [start = "", ...steps] = attributes["d"]!.match(/[MHVh][\d. ]+/g)!;
      let [x, y] = start.slice(1).split(" ").map(Number) as [number, number];
      return steps.map((step) => {
        const to = Number(step.slice(1));
        const [nextX, nextY] = step[0] === "V" ? [x, to] : [step[0] === "h" ? x + to : to, y];
        const line = {
          left: Math.min(x, nextX) - 1,
          right: Math.max(x, nextX) + 1,
          top: Math.min(y, nextY) - 1,
          bottom: Math.max(y, nextY) + 1,
        };
        [x, y] = [nextX, nextY];
        return line;
      });
    });

    expect(lines.length).toBeGreaterThan(40);
    expect(lines.filter((line) => texts.some((text) => overlap(line, text)))).toEqual([]);
  });
});

it("has its colours in both themes, and needs nothing from elsewhere", () => {
  const text = draw(pictureOf(crowded() as Seen));
  const svg = readSvg(text);
  const [light = "", dark = ""] = all(svg, "style")[0]!.text.split("@media");
  const used = all(svg, "rect")
    .concat(all(svg, "path"), all(svg, "text"), all(svg, "circle"))
    .flatMap(({ attributes }) => attributes["class"]!.split(" "))
    .filter((name) => /^[fs]-/.test(name));

  expect(dark).toMatch(/^ \(prefers-color-scheme:dark\)/);
  for (const name of new Set(used)) {
    expect(light).toContain(`.${name}{`);
    expect(dark).toContain(`.${name}{`);
  }
  expect(text.replace("http://www.w3.org/2000/svg", "")).not.toMatch(/<script|href|url\(|@import/);
});
