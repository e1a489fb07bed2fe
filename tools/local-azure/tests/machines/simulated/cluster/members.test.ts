import { Members } from "../../../../machines/simulated/cluster/members";
import { vmOf } from "../../../support/simulated/fixture";

const [one, two, three] = ["1", "2", "3"].map((zone) =>
  vmOf(`demo-cp-${zone}`, zone, `172.16.${zone}.4`),
) as [ReturnType<typeof vmOf>, ReturnType<typeof vmOf>, ReturnType<typeof vmOf>];

const all = Members.of(one).with(two).with(three);

it.each([
  { what: "three of three", members: all, haveQuorum: true },
  { what: "two of three", members: all.losing(one), haveQuorum: true },
  { what: "one of three", members: all.losing(one).losing(two), haveQuorum: false },
  { what: "one of two", members: Members.of(one).with(two).losing(two), haveQuorum: false },
  { what: "one of one", members: Members.of(one), haveQuorum: true },
  { what: "two well of three", members: all.sickening(one.name, "etcd"), haveQuorum: true },
  {
    what: "one well of two that live of three",
    members: all.sickening(one.name, "etcd").losing(two),
    haveQuorum: false,
  },
  {
    what: "two of three, with another part sick",
    members: all.sickening(one.name, "kube-apiserver").losing(two),
    haveQuorum: true,
  },
  {
    what: "two of three, one well again",
    members: all.sickening(one.name, "etcd").curing(one.name).losing(two),
    haveQuorum: true,
  },
  {
    what: "two of three, one switched off",
    members: all.switching({ ...one, isOff: true }),
    haveQuorum: true,
  },
  {
    what: "one of three, two switched off",
    members: all.switching({ ...one, isOff: true }).switching({ ...two, isOff: true }),
    haveQuorum: false,
  },
  {
    what: "two of three, switched on again",
    members: all
      .switching({ ...one, isOff: true })
      .switching({ ...two, isOff: true })
      .switching(one),
    haveQuorum: true,
  },
])("$what is a quorum: $haveQuorum", ({ members, haveQuorum }) => {
  expect(members.haveQuorum).toBe(haveQuorum);
});

it("keeps a dead member in the list until it is removed by name", () => {
  const successor = vmOf(two.name, "2", two.privateAddress);
  const lost = all.losing(two);

  expect(lost.has(two)).toBe(false);
  expect(lost.list).toHaveLength(3);
  expect(lost.without(successor).with(successor).has(successor)).toBe(true);
  expect(lost.without(successor).list).toHaveLength(2);
});

it("forgets what was sick of a machine with the machine", () => {
  const successor = vmOf(two.name, "2", two.privateAddress);
  const sick = all.sickening(two.name, "etcd");

  expect(sick.losing(two).list[1]).not.toHaveProperty("sick");
  expect(sick.losing(two).sickening(two.name, "etcd").list[1]).not.toHaveProperty("sick");
  expect(sick.without(successor).with(successor).list.at(-1)).not.toHaveProperty("sick");
});

it("knows when the last is gone", () => {
  expect(all.losing(one).losing(two).allGone).toBe(false);
  expect(all.losing(one).losing(two).losing(three).allGone).toBe(true);
});
