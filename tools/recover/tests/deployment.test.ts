import { type Created, type Recorded, withCreated } from "../deployment";

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
