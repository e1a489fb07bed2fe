import { CasArgs, planCas } from "../../../components/plan/certificate-authorities";
import type { MachineState } from "../../../components/azure/state";
import type { PreviousOutputs } from "../../../components/plan/machine-changes";
import { only, type RotationState } from "../../../components/kubeadm/rotation";
import { machine, validSettings } from "../../support/sample";

const id = "1-then";
const { kubernetesVersion } = validSettings;

const worker = { ...machine, name: "zoned-test-workers-1", role: "worker" as const };

const vm = (cas?: string): MachineState => ({
  size: machine.size,
  initialization: id,
  bootstrap: { state: "Failed", cas },
});

interface Scene extends Partial<Pick<CasArgs, "id" | "created">> {
  readonly machines?: Readonly<Record<string, MachineState>>;
  readonly remembered?: RotationState;
  /** Of one machine; another one has the version that is wanted. */
  readonly version?: string;
}

const planned = (caGeneration: number, scene: Scene = {}) =>
  planCas({
    settings: { clusterName: "zoned-test", kubernetesVersion, caGeneration },
    id,
    controlPlanes: [machine],
    workers: [worker],
    created: [],
    azure: { machines: new Map(Object.entries(scene.machines ?? {})) },
    previous:
      scene.remembered &&
      ({
        initialization: id,
        cas: scene.remembered,
        machines: {
          [machine.name]: { kubernetesVersion: scene.version ?? kubernetesVersion },
          [worker.name]: { kubernetesVersion },
        },
      } as unknown as PreviousOutputs),
    ...scene,
  });

const trusting = { keys: [1, 2], rewritten: false, past: [] };

it("makes a cluster with the CAs that are wanted, and says nothing of it", () => {
  expect(planned(1)).toEqual({ cas: only(1) });
  expect(planned(3)).toEqual({ cas: only(3) });
});

it("keeps what a cluster began with until an update has ended well", () => {
  expect(planned(2, { machines: { [machine.name]: vm("1") } })).toEqual({
    cas: only(1),
    message: expect.stringMatching(/^caGeneration is 2, and no update .* has ended well yet/),
  });
});

it("goes one stage an update, from what the last one that ended well has left", () => {
  expect(planned(1, { remembered: only(1) })).toEqual({ cas: only(1) });
  expect(planned(2, { remembered: only(1) }).cas).toEqual(trusting);
  expect(planned(2, { remembered: trusting })).toEqual({
    cas: { keys: [2, 1], rewritten: true, past: [] },
    message: expect.stringMatching(/^this update has every certificate signed by CA 2/),
  });
  expect(planned(2, { remembered: { keys: [2, 1], rewritten: true, past: [] } })).toMatchObject({
    cas: { keys: [2] },
    message: "this update has nobody trust CA 1 any more",
  });
});

it.each<[string, Scene, RegExp]>([
  ["restores the cluster", { id: `${id}-later` }, /restores the cluster from a snapshot/],
  ["upgrades Kubernetes", { version: "1.35.9" }, /upgrades Kubernetes to/],
  ["makes a control plane", { created: [machine] }, /makes zoned-test-cp-1/],
  [
    "removes a control plane",
    { machines: { "zoned-test-cp-2": vm("1 2") } },
    /removes zoned-test-cp-2/,
  ],
  [
    "removes a worker, whose kubeconfig stays that of before",
    { machines: { [worker.name]: vm(), "zoned-test-workers-2": vm() } },
    /removes zoned-test-workers-2,/,
  ],
])("does no stage in an update that %s, and says so", (_, scene, says) => {
  const { cas: authorities, message: said } = planned(2, { remembered: trusting, ...scene });

  expect(authorities).toEqual(trusting);
  expect(said).toMatch(says);
  expect(said).toMatch(/keeps CA 1, CA 2\. Run pulumi up again/);
});

it("does its stage beside a machine that somebody else has made in the resource group", () => {
  const machines = { "jump-host": { size: machine.size } };

  expect(planned(2, { remembered: trusting, machines }).cas.keys).toEqual([2, 1]);
});

it("does its stage in an update that makes workers", () => {
  expect(planned(2, { remembered: trusting, created: [worker] }).cas.keys).toEqual([2, 1]);
});
