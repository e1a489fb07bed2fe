import { versions } from "../../../components/versions";
import { neededPrograms } from "../needed-programs";
import { nextPatch, previousMinor } from "../../programs/releases";
import { answering } from "./support/fixture";

const tools = (there: RegExp, ...kubernetes: string[]) =>
  neededPrograms(answering(there), [versions.kubernetes, ...kubernetes]);

const names = async (there: RegExp) => (await tools(there)).map(({ name }) => name);

it("builds nothing that an official source gives", async () => {
  expect(await names(/./)).toEqual(["kubernetes"]);
  expect(await names(/pkgs\.k8s\.io|registry\.k8s\.io|microsoft/)).toEqual([
    "kubernetes",
    "flannel",
  ]);
});

it("builds Azure's cloud provider only for stacks that run it", async () => {
  const asked = (cloudProvider: boolean) =>
    neededPrograms(answering(/^nowhere$/), [versions.kubernetes], cloudProvider);
  const programs = ["cloud-controller-manager-static", "cloud-node-manager-static"];

  const [without, withIt] = await Promise.all([asked(false), asked(true)]);
  expect(without.filter(({ name }) => programs.includes(name))).toEqual([]);
  expect(withIt.map(({ name }) => name)).toEqual(expect.arrayContaining(programs));
  expect(withIt.filter(({ image }) => image !== undefined)).toEqual([]);
});

it("builds each thing once, and the kubelet when most of it is in Go's cache", async () => {
  const needed = await names(/^nowhere$/);

  expect(new Set(needed).size).toBe(needed.length);
  expect(needed[0]).toBe("kubernetes");
  expect(needed.at(-1)).toBe("kubernetes-node");
  expect(needed).toEqual(expect.arrayContaining(["coredns", "etcd", "flannel", "cni-plugins"]));
});

it("builds another version only for those who ask for it", async () => {
  const others = [nextPatch.version, previousMinor.version];
  const versionsOf = async (asked: string[]) =>
    (await tools(/^nowhere$/, ...asked)).map(({ name, version }) => `${name} ${version}`);

  const [usual, more] = await Promise.all([versionsOf([]), versionsOf(others)]);
  expect(usual.join()).not.toMatch(new RegExp(others.join("|")));
  expect(more).toEqual(expect.arrayContaining(others.map((one) => `kubernetes-node ${one}`)));
  expect(new Set(more).size).toBe(more.length);
});
