import type { Values } from "../stack";
import type { Cases } from "./case";

const workers: Values = { name: "workers", count: 2 };
const pool = (change: Values): Values => ({ workerPools: [{ ...workers, ...change }] });
const taint = (change: Values): Values =>
  pool({ taints: [{ key: "gpu", effect: "NoSchedule", ...change }] });

export const poolCases: Cases = {
  refused: [
    {
      flaw: "a pool without a name",
      values: { workerPools: [{ count: 2 }] },
      says: "workerPools[0].name is not set",
    },
    {
      flaw: "a second pool without a name",
      values: { workerPools: [workers, { count: 2 }] },
      says: "config set --path 'workerPools[1].name' pool-2",
    },
    { flaw: "a map of pools", values: { workerPools: { gpu: 1 } }, says: "a list of pools" },
    {
      flaw: "a pool without a count",
      values: { workerPools: [{ name: "workers" }] },
      says: "workerPools[0].count is not set",
    },
    {
      flaw: "a count in words",
      values: pool({ count: "two" }),
      says: 'workerPools[0].count is "two"',
    },
    { flaw: "half a machine", values: pool({ count: 1.5 }), says: "a whole number" },
    { flaw: "less than none", values: pool({ count: -1 }), says: "0 or more" },
    {
      flaw: "a word for a setting",
      values: pool({ zone: "1" }),
      says:
        "workerPools[0].zone is not a known name, expected one of name, count, size, " +
        "zones, labels, taints, maxUnavailable; did you mean zones?",
    },
    { flaw: "a size that is no text", values: pool({ size: 2 }), says: "workerPools[0].size is 2" },
    {
      flaw: "a capital letter in a pool's name",
      values: pool({ name: "GPU" }),
      says: 'workerPools[0].name is "GPU"',
    },
    { flaw: "a name that is too long", values: pool({ name: "a".repeat(17) }), says: "up to 16" },
    {
      flaw: "the control planes' name",
      values: pool({ name: "cp" }),
      says: "another name than cp",
    },
    {
      flaw: "a name twice",
      values: { workerPools: [workers, workers] },
      says: 'workerPools[1].name is "workers", expected a name of its own',
    },
    {
      flaw: "a zone that the cluster is not in",
      values: { zones: ["1", "2"], ...pool({ zones: ["3"] }) },
      says: "some of this cluster's zones 1, 2",
    },
    { flaw: "a pool in no zone", values: pool({ zones: [] }), says: "workerPools[0].zones is []" },
    { flaw: "a pool's zone twice", values: pool({ zones: ["1", "1"] }), says: "none twice" },
    {
      flaw: "a pool's zone as a number",
      values: pool({ zones: [1] }),
      says: "workerPools[0].zones[0] is 1, expected text",
    },
    {
      flaw: "a pool on Arm",
      values: pool({ size: "Standard_D4ps_v5" }),
      says: "config set --path 'workerPools[0].size' Standard_D4s_v5",
    },
    {
      flaw: "a pool without Premium disks",
      values: pool({ size: "Standard_E4_v5" }),
      says: "config set --path 'workerPools[0].size' Standard_E4s_v5",
    },
    {
      flaw: "a label that is no name",
      values: pool({ labels: { "a b": "c" } }),
      says: 'has the key "a b"',
    },
    {
      flaw: "a label with two slashes",
      values: pool({ labels: { "a/b/c": "d" } }),
      says: 'has the key "a/b/c"',
    },
    {
      flaw: "a label's domain in capitals",
      values: pool({ labels: { "Example.com/a": "b" } }),
      says: "perhaps with a domain",
    },
    {
      flaw: "a label that Kubernetes keeps",
      values: pool({ labels: { "topology.kubernetes.io/zone": "1" } }),
      says: "Kubernetes keeps kubernetes.io",
    },
    {
      flaw: "a label of k8s.io",
      values: pool({ labels: { "k8s.io/team": "a" } }),
      says: "Kubernetes keeps kubernetes.io",
    },
    {
      flaw: "a label's value with a space",
      values: pool({ labels: { team: "a b" } }),
      says: 'has the value "a b"',
    },
    {
      flaw: "a label's value that is too long",
      values: pool({ labels: { team: "a".repeat(64) } }),
      says: "63 letters",
    },
    {
      flaw: "labels in a list",
      values: pool({ labels: ["a"] }),
      says: 'workerPools[0].labels is ["a"]',
    },
    {
      flaw: "a label with more below",
      values: pool({ labels: { team: { a: 1 } } }),
      says: "workerPools[0].labels.team is",
    },
    {
      flaw: "an unknown effect",
      values: taint({ effect: "NoScheduling" }),
      says: "one of NoSchedule, PreferNoSchedule, NoExecute",
    },
    {
      flaw: "a taint without an effect",
      values: taint({ effect: undefined }),
      says: "workerPools[0].taints[0].effect is not set",
    },
    {
      flaw: "a taint without a key",
      values: taint({ key: undefined }),
      says: 'workerPools[0].taints[0] has the key ""',
    },
    {
      flaw: "a taint's value with a space",
      values: taint({ value: "a b" }),
      says: 'has the value "a b"',
    },
    {
      flaw: "a taint's unknown part",
      values: taint({ operator: "Exists" }),
      says: "workerPools[0].taints[0].operator is not a known name",
    },
    {
      flaw: "taints by name",
      values: pool({ taints: { gpu: "NoSchedule" } }),
      says: "a list of key, value and effect",
    },
    {
      flaw: "a taint twice",
      values: pool({
        taints: [
          { key: "a", effect: "NoSchedule" },
          { key: "a", value: "b", effect: "NoSchedule" },
        ],
      }),
      says: "workerPools[0].taints[1] repeats a with NoSchedule",
    },
  ],
  accepted: [
    { merit: "no pools", values: { workerPools: [] } },
    { merit: "an empty pool", values: pool({ count: 0 }) },
    {
      merit: "a pool with less than a control plane needs",
      values: pool({ size: "Standard_B1ls" }),
    },
    { merit: "a name of 16 characters", values: pool({ name: "a".repeat(16) }) },
    { merit: "a pool in one zone", values: pool({ zones: ["3"] }) },
    {
      merit: "labels that operators are meant to write",
      values: pool({
        labels: {
          "node-role.kubernetes.io/gpu": "",
          "example.com/team": "a",
          "node.kubernetes.io/exclude-from-external-load-balancers": "true",
        },
      }),
    },
    { merit: "a label that YAML took for a number", values: pool({ labels: { generation: 2 } }) },
    {
      merit: "a taint with two effects",
      values: pool({
        taints: [
          { key: "a", effect: "NoSchedule" },
          { key: "a", effect: "NoExecute" },
        ],
      }),
    },
  ],
};
