import { entry, found, Problem, findings, inItsCase, toRemove, toSet, wants } from "../problem";
import type { Settings, Taint, WorkerPool } from "../settings";
import { controlPlaneMark, spotMark } from "../topology";
import { maxPods, podsRange } from "./argument-values";
import { localDisks, osDiskSizes, osDiskSkus } from "./sizes";

const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

const labelName = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const labelPrefix =
  /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const labelValue = /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;

const isQualified = (key: string): boolean => {
  const [name = "", prefix, ...rest] = key.split("/").reverse();
  return (
    labelName.test(name) && rest.length === 0 && (prefix === undefined || labelPrefix.test(prefix))
  );
};

/** Kubernetes keeps its own domains for itself, except where an operator is meant to write. */
const isKept = (key: string): boolean => {
  const prefix = key.includes("/") ? key.slice(0, key.indexOf("/")) : "";
  return (
    /(^|\.)(kubernetes|k8s)\.io$/.test(prefix) &&
    !/(^|\.)(node-role|node-restriction)\.kubernetes\.io$/.test(prefix) &&
    key !== "node.kubernetes.io/exclude-from-external-load-balancers"
  );
};

/** kubeadm's mark, and the one before it, by which Azure's cloud provider still goes. */
const controlPlaneMarks = [controlPlaneMark, "node-role.kubernetes.io/master"];

function keyAndValue(at: string, key: string, value: string, remove: string): Problem[] {
  const problem = (is: string, expected: string): Problem => ({
    key: at,
    is,
    expected,
    fix: toRemove(remove),
  });
  return findings(
    !isQualified(key) &&
      problem(
        `has the key ${JSON.stringify(key)}`,
        "letters, digits, - _ and . (63 at most), perhaps with a domain and a slash before",
      ),
    isKept(key) &&
      problem(
        `has the key ${key}`,
        "a domain of your own, since Kubernetes keeps kubernetes.io and k8s.io " +
          "(but node-role.kubernetes.io)",
      ),
    controlPlaneMarks.includes(key) &&
      problem(
        `has the key ${key}`,
        "another role, since control planes are known by this one: upgrades would ask for an etcd member " +
          "there, and the controllers of Azure's cloud provider would run there, without its identity",
      ),
    !labelValue.test(value) &&
      problem(
        `has the value ${JSON.stringify(value)}`,
        "63 letters, digits, - _ and . at most, with a letter or digit at both ends",
      ),
  );
}

function taintProblems(at: string, taints: readonly Taint[]): Problem[] {
  return taints.flatMap(({ key, value, effect }, index) => {
    const place = `${at}.taints[${index}]`;
    const twice = taints.findIndex((other) => other.key === key && other.effect === effect) < index;
    return findings(
      ...keyAndValue(place, key, value ?? "", place),
      !effects.includes(effect) &&
        wants(
          `${place}.effect`,
          effect,
          `one of ${effects.join(", ")}`,
          inItsCase(effect, effects),
        ),
      twice && {
        key: place,
        is: `repeats ${key} with ${effect}`,
        expected: "each key once per effect, as the kubelet registers them",
        fix: toRemove(place),
      },
    );
  });
}

function maxPodsProblems(at: string, given: number | undefined, settings: Settings): Problem[] {
  const { kubeadm } = settings;
  if (given === undefined) return [];
  if (!Number.isInteger(given) || maxPods(String(given), settings) !== undefined) {
    return [wants(at, given, podsRange(settings), 110)];
  }
  if (kubeadm.kubeletExtraArgs["max-pods"] === undefined) return [];
  return [
    {
      key: at,
      is: "is set beside kubeadm.kubeletExtraArgs.max-pods",
      expected: "one of them: that argument is for every machine, and would take this one's place",
      fix: toRemove("kubeadm.kubeletExtraArgs.max-pods"),
    },
  ];
}

function osDiskProblems(at: string, { osDiskSku, osDiskSizeGb }: WorkerPool): Problem[] {
  const { least, most, why } = osDiskSizes;
  return findings(
    !osDiskSkus.includes(osDiskSku) &&
      wants(
        `${at}.osDiskSku`,
        osDiskSku,
        `one of ${osDiskSkus.join(", ")}`,
        inItsCase(osDiskSku, osDiskSkus),
      ),
    !(Number.isInteger(osDiskSizeGb) && osDiskSizeGb >= least && osDiskSizeGb <= most) &&
      wants(`${at}.osDiskSizeGb`, osDiskSizeGb, `${least} to ${most}, ${why}`, 64),
  );
}

function ephemeralProblems(
  at: string,
  { ephemeralOsDisk, spot }: WorkerPool,
  { diskEncryptionSetId, encryptionAtHost }: Settings,
): Problem[] {
  if (ephemeralOsDisk === undefined) return [];
  const key = `${at}.ephemeralOsDisk`;
  if (!localDisks.includes(ephemeralOsDisk)) {
    const expected = `one of ${localDisks.join(", ")}, by what the size has; without it the disk is in Azure's storage`;
    return [{ key, is: found(ephemeralOsDisk), expected, fix: toRemove(key) }];
  }
  return findings(
    spot?.evictionPolicy === "Deallocate" && {
      key,
      is: "is set beside spot.evictionPolicy Deallocate",
      expected: "Delete, since Azure deallocates no machine whose OS disk its host has",
      fix: toSet(`${at}.spot.evictionPolicy`, "Delete"),
    },
    diskEncryptionSetId !== "" &&
      !encryptionAtHost && {
        key,
        is: "is set beside diskEncryptionSetId",
        expected:
          "encryptionAtHost too, without which Azure encrypts no disk of a host by a key of yours",
        fix: toSet("encryptionAtHost", "true"),
      },
  );
}

const evictionPolicies = ["Delete", "Deallocate"];

function spotProblems(at: string, { spot, labels, taints }: WorkerPool): Problem[] {
  if (spot === undefined) return [];
  const { evictionPolicy, maxPrice } = spot;
  const hasMark = (key: string): Problem => ({
    key,
    is: `has the key ${spotMark}`,
    expected: "a key of your own, since machines of a spot pool have this one by themselves",
    fix: toRemove(key),
  });
  return findings(
    !evictionPolicies.includes(evictionPolicy) &&
      wants(
        `${at}.spot.evictionPolicy`,
        evictionPolicy,
        "Delete or Deallocate, which is what Azure does with a machine that it takes back",
        inItsCase(evictionPolicy, evictionPolicies),
      ),
    maxPrice !== undefined &&
      !(maxPrice > 0 && /^\d+(\.\d{1,5})?$/.test(String(maxPrice))) && {
        key: `${at}.spot.maxPrice`,
        is: found(maxPrice),
        expected:
          "US dollars an hour, above 0 and with five decimals at most; without it machines cost " +
          "what a regular one does at most, and none is taken back for its price",
        fix: toRemove(`${at}.spot.maxPrice`),
      },
    labels[spotMark] !== undefined && hasMark(entry(`${at}.labels`, spotMark)),
    ...taints.map(({ key }, index) => key === spotMark && hasMark(`${at}.taints[${index}]`)),
  );
}

/** What is wrong with the stack's own disk is said once, of that. */
const isOwnDisk = (pool: WorkerPool, { osDiskSku, osDiskSizeGb }: Settings): boolean =>
  pool.osDiskSku !== osDiskSku || !Object.is(pool.osDiskSizeGb, osDiskSizeGb);

/** A name that no pool has, nor gets by the command of another one. */
function freeName(pools: readonly WorkerPool[], index: number): string {
  for (let number = index + 1; ; number += pools.length) {
    const name = `pool-${number}`;
    if (pools.every((pool) => pool.name !== name)) return name;
  }
}

/**
 * What is wrong with the worker pools. Whether they fit their subnets is checked with the ranges.
 */
export function poolProblems(settings: Settings): Problem[] {
  const { workerPools, zones } = settings;
  return workerPools.flatMap((pool, index) => {
    const at = `workerPools[${index}]`;
    const rename = (expected: string): Problem =>
      wants(`${at}.name`, pool.name, expected, freeName(workerPools, index));
    const known = new Set(pool.zones.filter((zone) => zones.includes(zone)));
    const sameZones = String(pool.zones) === String(zones);
    return findings(
      !/^[a-z]([a-z0-9-]{0,14}[a-z0-9])?$/.test(pool.name) &&
        rename(
          "up to 16 lower-case letters, digits and -, since machines and nodes are named after it",
        ),
      pool.name === "cp" && rename("another name than cp, which control planes have"),
      workerPools.findIndex(({ name }) => name === pool.name) < index &&
        rename("a name of its own"),
      !(Number.isInteger(pool.count) && pool.count >= 0) &&
        wants(`${at}.count`, pool.count, "a whole number of machines, 0 or more", 2),
      !(Number.isInteger(pool.maxUnavailable) && pool.maxUnavailable >= 1) &&
        wants(
          `${at}.maxUnavailable`,
          pool.maxUnavailable,
          "how many of the pool's machines may change at a time, 1 or more",
          1,
        ),
      !sameZones &&
        !(known.size > 0 && known.size === pool.zones.length) && {
          key: `${at}.zones`,
          is: found(pool.zones),
          expected: `some of this cluster's zones ${zones.join(", ")}, none twice`,
          fix: toRemove(`${at}.zones`),
        },
      ...Object.entries(pool.labels).flatMap(([key, value]) =>
        keyAndValue(`${at}.labels`, key, value, entry(`${at}.labels`, key)),
      ),
      ...taintProblems(at, pool.taints),
      ...(isOwnDisk(pool, settings) ? osDiskProblems(at, pool) : []),
      ...maxPodsProblems(`${at}.maxPods`, pool.maxPods, settings),
      ...spotProblems(at, pool),
      ...ephemeralProblems(at, pool, settings),
    );
  });
}
