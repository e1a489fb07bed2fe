import { parseMembers } from "../../../../../../components/cluster/etcd-member";
import {
  etcdVersionIn,
  memberId,
  runEtcdctlPod,
} from "../../../../machines/simulated/cluster/etcdctl";
import { Members } from "../../../../machines/simulated/cluster/members";
import { vmOf } from "../../../support/simulated/fixture";

const vms = ["1", "2", "3"].map((zone) => vmOf(`demo-cp-${zone}`, zone, `172.16.${zone}.4`));
const [one, two, three] = vms as [(typeof vms)[0], (typeof vms)[0], (typeof vms)[0]];
const all = Members.of(one).with(two).with(three);
const find = (name: string) => vms.find((vm) => vm.name === name);

const folder = "/etc/kubernetes/pki/etcd";
const pod = (...commands: readonly (readonly string[])[]) => {
  const containers = commands.map((command, index) => ({
    name: `step-${index}`,
    command: ["etcdctl", "--endpoints=https://127.0.0.1:2379", ...command],
    volumeMounts: [{ name: "pki", mountPath: folder }],
  }));
  return {
    spec: {
      hostNetwork: true,
      initContainers: containers.slice(0, -1),
      containers: containers.slice(-1),
      volumes: [{ name: "pki", hostPath: { path: folder } }],
    },
  };
};
const run = (body: object, members = all) =>
  runEtcdctlPod(body, members, { vmOf: find, versionOf: ({ name }) => `3.6.${name.slice(-1)}` });

it("lists members as the program reads them", () => {
  const { output } = run(pod(["member", "list"]))!;

  expect(parseMembers(output)).toEqual(
    vms.map((vm) => ({
      id: memberId(vm),
      hasStarted: true,
      name: vm.name,
      peerUrl: `https://${vm.privateAddress}:2380`,
      clientUrl: `https://${vm.privateAddress}:2379`,
      isLearner: false,
    })),
  );
});

it("removes the member whose id it is given, after what its init containers did", () => {
  const ended = run(pod(["move-leader", memberId(one)], ["member", "remove", memberId(three)]))!;

  expect(ended.exitCode).toBe(0);
  expect(ended.members.list.map(({ machine }) => machine)).toEqual(["demo-cp-1", "demo-cp-2"]);
  expect([...ended.outputs.keys()]).toEqual(["step-0", "step-1"]);
});

it("removes nobody where etcd would refuse", () => {
  const lost = all.withDeleted(two);

  for (const [members, id, says] of [
    [lost, memberId(three), "unhealthy cluster"],
    [all, "0123456789abcdef", "Member not found"],
  ] as const) {
    const ended = run(pod(["member", "remove", id]), members)!;
    expect(ended).toMatchObject({ exitCode: 1, output: expect.stringContaining(says), members });
  }
});

it("asks each member how it is, and fails where one does not serve", () => {
  const ask = (members: Members) => run(pod(["endpoint", "health", "--cluster"]), members)!;

  expect(ask(all).exitCode).toBe(0);
  const { exitCode, output } = ask(all.withFailure(two.name, "etcd"));
  expect(exitCode).toBe(1);
  expect(output.split("\n").map((line) => line.split(":").slice(0, 3).join(":"))).toEqual([
    "https://172.16.1.4:2379 is healthy",
    "https://172.16.2.4:2379 is unhealthy",
    "https://172.16.3.4:2379 is healthy",
    "Error: unhealthy cluster",
    "",
  ]);
  expect(ask(all.withFailure(two.name, "etcd-space")).output).toMatch(
    /172\.16\.1\.4:2379 is unhealthy: .*NOSPACE/,
  );
});

it("says of the members that are asked which version they have, by the image in a manifest", () => {
  const { output } = run(pod(["endpoint", "status", "--endpoints=https://172.16.2.4:2379"]))!;

  expect(etcdVersionIn("    image: registry.k8s.io/etcd:3.6.14-0\n")).toBe("3.6.14");
  expect(JSON.parse(output)).toEqual([
    { Endpoint: "https://172.16.2.4:2379", Status: { version: "3.6.2" } },
  ]);
});

it("finds no certificates in a pod that does not mount them, and leaves other pods alone", () => {
  const { spec } = pod(["member", "list"]);

  expect(run({ spec: { ...spec, volumes: [] } })).toMatchObject({
    exitCode: 1,
    output: expect.stringContaining("ca.crt: no such file"),
  });
  expect(run({ spec: { containers: [{ name: "web" }] } })).toBeUndefined();
});
