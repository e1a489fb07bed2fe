import { type Created, inputsOf, type Recorded, withCreated } from "../deployment";

const urn = (name: string): string => `urn:pulumi:prod::zoned::azure-native:x:Y::${name}`;

const one = (name: string, more: Partial<Recorded> = {}): Recorded => ({
  urn: urn(name),
  type: "azure-native:x:Y",
  custom: true,
  id: `/${name}`,
  ...more,
});

const created = (name: string, more: Partial<Created> = {}): Created => ({
  ...one(name, more),
  id: `/${name}`,
  inputs: {},
  ...more,
});

const after = (resources: Recorded[], news: Created[]) =>
  withCreated({ resources }, news).resources!;

it("puts what was created behind all that it refers to, and before all that refers to it", () => {
  const provider: Recorded = { urn: urn("provider"), type: "pulumi:providers:x", id: "a" };
  const step = one("step", { deletedWith: urn("vm"), dependencies: [urn("vm")] });
  const vm = created("vm", {
    parent: urn("machine"),
    provider: `${provider.urn}::a`,
    propertyDependencies: { nics: [urn("nic")], zones: null },
  });

  const order = after([step, one("machine"), one("nic"), provider], [vm]);

  expect(order.map(({ urn }) => urn.split("::").at(-1))).toEqual([
    "machine",
    "provider",
    "nic",
    "vm",
    "step",
  ]);
});

it("leaves everything else as and where it was", () => {
  const before = [one("a"), one("b", { parent: urn("a") }), one("b", { delete: true, id: "/old" })];

  expect(after(before, [created("c")])).toEqual([...before, created("c")]);
});

it("gives it the place of an entry that was deleted before its replacement", () => {
  const old = one("vm", { id: "/old", pendingReplacement: true, inputs: { image: "old" } });
  const vm = created("vm", { inputs: { image: "new" } });

  expect(after([old], [vm])).toEqual([vm]);
});

it("gives it the place of an entry that has its id, in whatever case Azure writes it", () => {
  expect(after([one("vm", { id: "/VM" })], [created("vm")])).toEqual([created("vm")]);
});

it("leaves it to the engine to delete what something of another id replaces", () => {
  const old = one("role", { id: "/old" });

  expect(after([old], [created("role")])).toEqual([{ ...old, delete: true }, created("role")]);
});

const secret = { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270" };

it.each([
  {
    what: "keeps what Azure never shows",
    sent: { osProfile: { computerName: "a", customData: "x" }, protectedSettings: secret },
    shown: { osProfile: { computerName: "a" } },
    recorded: { osProfile: { computerName: "a", customData: "x" }, protectedSettings: secret },
  },
  {
    what: "takes no default of Azure for a wish",
    sent: { sku: { name: "Standard" } },
    shown: { sku: { name: "Standard", tier: "Regional" }, idleTimeoutInMinutes: 4 },
    recorded: { sku: { name: "Standard" } },
  },
  {
    what: "believes Azure where it shows something else than was sent",
    sent: { size: "B2s", zones: ["1"], pools: [{ id: "/a" }, { id: "/b" }] },
    shown: { size: "B4s", zones: ["1", "2"], pools: [{ id: "/a", etag: "x" }, { id: "/c" }] },
    recorded: { size: "B4s", zones: ["1", "2"], pools: [{ id: "/a" }, { id: "/c" }] },
  },
  {
    what: "keeps a list that Azure shows as a map",
    sent: { identities: ["/a"] },
    shown: { identities: { "/a": {} } },
    recorded: { identities: ["/a"] },
  },
  {
    what: "never takes a secret out of its cipher",
    sent: { tags: secret },
    shown: { tags: "in clear" },
    recorded: { tags: secret },
  },
])("$what", ({ sent, shown, recorded }) => {
  expect(inputsOf(sent, shown)).toEqual(recorded);
});
