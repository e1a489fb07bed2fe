import type { MachineState } from "../../../components/azure/state";
import { nextKeys, only } from "../../../components/kubeadm/rotation";
import type { ServiceAccountKeys } from "../../../components/kubeadm/service-account-keys";
import type { PreviousOutputs } from "../../../components/plan/machine-changes";
import {
  planServiceAccountKeys,
  type ServiceAccountKeysArgs,
} from "../../../components/plan/service-account-keys";
import { machine } from "../../support/sample";

const id = "1-then";
const now = "2026-11-28T12:00:00.000Z";

interface Scene extends Partial<Pick<ServiceAccountKeysArgs, "id" | "legacyTokens" | "now">> {
  readonly machines?: Readonly<Record<string, MachineState>>;
  readonly remembered?: ServiceAccountKeys;
}

const planned = (serviceAccountKeyGeneration: number, scene: Scene = {}) =>
  planServiceAccountKeys({
    settings: { clusterName: "zoned-test", serviceAccountKeyGeneration },
    id,
    azure: { machines: new Map(Object.entries(scene.machines ?? {})) },
    previous:
      scene.remembered &&
      ({ initialization: id, serviceAccountKeys: scene.remembered } as PreviousOutputs),
    legacyTokens: { secrets: [] },
    now,
    ...scene,
  });

const admitting = nextKeys(only(1), 2);
const signing = { ...nextKeys(admitting, 2), signingSince: "2026-11-27T00:00:00.000Z" };

it("makes a cluster with the key that is wanted, and says nothing of it", () => {
  expect(planned(1)).toEqual({ serviceAccountKeys: only(1) });
  expect(planned(3)).toEqual({ serviceAccountKeys: only(3) });
});

it("keeps what a cluster began with until an update has ended well", () => {
  const begun = { size: machine.size, initialization: id };
  const machines = {
    [machine.name]: { ...begun, bootstrap: { state: "Failed", serviceAccountKeys: "1" } },
  };

  expect(planned(2, { machines })).toEqual({
    serviceAccountKeys: only(1),
    message: expect.stringMatching(/^serviceAccountKeyGeneration is 2, and no update .* well yet/),
  });
});

it("goes one stage an update, and remembers since when the new key signs", () => {
  expect(planned(2, { remembered: only(1) }).serviceAccountKeys).toEqual(admitting);
  expect(planned(2, { remembered: admitting })).toEqual({
    serviceAccountKeys: { keys: [2, 1], rewritten: true, past: [], signingSince: now },
    message: expect.stringMatching(/^this update has every token signed by service account key 2/),
  });
});

it("admits tokens of the old key for a day and a half after the new one began to sign", () => {
  const lastMinute = { remembered: signing, now: "2026-11-28T11:59:00.000Z" };

  expect(planned(2, lastMinute)).toEqual({
    serviceAccountKeys: signing,
    message:
      "pods may have tokens of service account key 1 until 2026-11-28T12:00:00.000Z, so that this update keeps it. Run pulumi up again after that",
  });
  expect(planned(2, { remembered: signing })).toEqual({
    serviceAccountKeys: only(2, [1]),
    message: "this update has no API server admit tokens of service account key 1 any more",
  });
});

it("keeps the old key as long as Secrets have tokens of it, and names them", () => {
  const legacyTokens = { secrets: ["default/ci", "tools/backup"] };

  expect(planned(2, { remembered: signing, legacyTokens })).toEqual({
    serviceAccountKeys: signing,
    message: expect.stringMatching(
      /of service account key 1 that never end are in Secrets \(default\/ci, tools\/backup\).*kubectl delete secret/,
    ),
  });
});

it("keeps the old key where nobody knows whether Secrets have tokens of it", () => {
  const legacyTokens = { unknown: "the API does not answer" };

  expect(planned(2, { remembered: signing, legacyTokens })).toEqual({
    serviceAccountKeys: signing,
    message: expect.stringContaining("the API does not answer"),
  });
});

it("does no stage in an update that restores the cluster, and says so", () => {
  const { serviceAccountKeys, message } = planned(2, { remembered: admitting, id: `${id}-later` });

  expect(serviceAccountKeys).toEqual(admitting);
  expect(message).toMatch(/restores the cluster from a snapshot/);
});
