import { Members } from "../../../../machines/simulated/cluster/members";
import { vmOf } from "../../../support/simulated/fixture";

const [one, two, three] = ["1", "2", "3"].map((zone) =>
  vmOf(`demo-cp-${zone}`, zone, `172.16.${zone}.4`),
) as [ReturnType<typeof vmOf>, ReturnType<typeof vmOf>, ReturnType<typeof vmOf>];

const all = Members.of(one).with(two).with(three);

it.each([
  { what: "three of three", members: all, haveQuorum: true },
  { what: "two of three", members: all.withDeleted(one), haveQuorum: true },
  { what: "one of three", members: all.withDeleted(one).withDeleted(two), haveQuorum: false },
  { what: "one of two", members: Members.of(one).with(two).withDeleted(two), haveQuorum: false },
  { what: "one of one", members: Members.of(one), haveQuorum: true },
  { what: "two healthy of three", members: all.withFailure(one.name, "etcd"), haveQuorum: true },
  {
    what: "one healthy of two that live of three",
    members: all.withFailure(one.name, "etcd").withDeleted(two),
    haveQuorum: false,
  },
  {
    what: "two of three, with another component unhealthy",
    members: all.withFailure(one.name, "kube-apiserver").withDeleted(two),
    haveQuorum: true,
  },
  {
    what: "two of three, one healthy again",
    members: all.withFailure(one.name, "etcd").withoutFailures(one.name).withDeleted(two),
    haveQuorum: true,
  },
  {
    what: "two of three, one switched off",
    members: all.withPower({ ...one, isOff: true }),
    haveQuorum: true,
  },
  {
    what: "one of three, two switched off",
    members: all.withPower({ ...one, isOff: true }).withPower({ ...two, isOff: true }),
    haveQuorum: false,
  },
  {
    what: "two of three, switched on again",
    members: all
      .withPower({ ...one, isOff: true })
      .withPower({ ...two, isOff: true })
      .withPower(one),
    haveQuorum: true,
  },
])("$what is a quorum: $haveQuorum", ({ members, haveQuorum }) => {
  expect(members.haveQuorum).toBe(haveQuorum);
});

it("keeps a dead member in the list until it is removed by name", () => {
  const successor = vmOf(two.name, "2", two.privateAddress);
  const lost = all.withDeleted(two);

  expect(lost.has(two)).toBe(false);
  expect(lost.list).toHaveLength(3);
  expect(lost.without(successor).with(successor).has(successor)).toBe(true);
  expect(lost.without(successor).list).toHaveLength(2);
});

it("forgets failures of a machine with the machine", () => {
  const successor = vmOf(two.name, "2", two.privateAddress);
  const unhealthy = all.withFailure(two.name, "etcd");

  expect(unhealthy.withDeleted(two).list[1]).not.toHaveProperty("unhealthy");
  expect(unhealthy.withDeleted(two).withFailure(two.name, "etcd").list[1]).not.toHaveProperty(
    "unhealthy",
  );
  expect(unhealthy.without(successor).with(successor).list.at(-1)).not.toHaveProperty("unhealthy");
});

it("knows when the last is gone", () => {
  expect(all.withDeleted(one).withDeleted(two).allGone).toBe(false);
  expect(all.withDeleted(one).withDeleted(two).withDeleted(three).allGone).toBe(true);
});
