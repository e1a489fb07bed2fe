import { idIn } from "../sample";
import type { Cases, Refused, Values } from "../stack";

const diskEncryptionSetId = idIn("keys", "Microsoft.Compute/diskEncryptionSets/kubernetes");
const workers: Values = { name: "workers", count: 2 };
const pool = (change: Values): Values => ({ workerPools: [{ ...workers, ...change }] });
const taint = (change: Values): Values =>
  pool({ taints: [{ key: "gpu", effect: "NoSchedule", ...change }] });

export const poolCases: Cases = {
  refused: [
    [{ workerPools: [{ count: 2 }] }, "workerPools[0].name is not set"],
    [{ workerPools: [workers, { count: 2 }] }, "config set --path 'workerPools[1].name' pool-2"],
    [{ workerPools: { gpu: 1 } }, "a list of pools"],
    [
      { workerPools: [workers, "gpu"] },
      'workerPools[1] is "gpu", expected values by name, in a list of pools, each with name and count',
    ],
    [{ workerPools: [{ name: "workers" }] }, "workerPools[0].count is not set"],
    [pool({ count: "two" }), 'workerPools[0].count is "two"'],
    [pool({ count: 1.5 }), "a whole number"],
    [pool({ count: -1 }), "0 or more"],
    [pool({ zone: "1" }), "did you mean zones? (pulumi config rm --path 'workerPools[0].zone')"],
    [pool({ size: 2 }), "workerPools[0].size is 2"],
    [pool({ name: "GPU" }), 'workerPools[0].name is "GPU"'],
    [pool({ name: "a".repeat(17) }), "up to 16"],
    [pool({ name: "cp" }), "another name than cp"],
    [
      { workerPools: [workers, workers] },
      'workerPools[1].name is "workers", expected a name of its own',
    ],
    [{ zones: ["1", "2"], ...pool({ zones: ["3"] }) }, "some of this cluster's zones 1, 2"],
    [pool({ zones: [] }), "workerPools[0].zones is []"],
    [pool({ zones: ["1", "1"] }), "none twice"],
    [pool({ zones: [1] }), "workerPools[0].zones[0] is 1, expected text"],
    [pool({ size: "Standard_E4_v5" }), "config set --path 'workerPools[0].size' Standard_E4s_v5"],
    [pool({ maxUnavailable: 0 }), "config set --path 'workerPools[0].maxUnavailable' 1"],
    [pool({ maxUnavailable: 1.5 }), "config set --path 'workerPools[0].maxUnavailable' 1"],
    [
      pool({ osDiskSku: "Standard_LRS" }),
      "config set --path 'workerPools[0].osDiskSku' Premium_LRS",
    ],
    [
      pool({ osDiskSku: "standardssd_lrs" }),
      "config set --path 'workerPools[0].osDiskSku' StandardSSD_LRS",
    ],
    [pool({ osDiskSizeGb: 29 }), "workerPools[0].osDiskSizeGb is 29, expected 30 to 4095"],
    [pool({ osDiskSizeGb: "64 GB" }), "workerPools[0].osDiskSizeGb is"],
    [
      {
        osDiskSku: "StandardSSD_LRS",
        ...pool({ size: "Standard_E4_v5", osDiskSku: "Premium_LRS" }),
      },
      "config set --path 'workerPools[0].size' Standard_E4s_v5",
    ],
    [pool({ maxPods: 254 }), "workerPools[0].maxPods is 254, expected 10 to 253"],
    [pool({ maxPods: 9 }), "expected 10 to 253"],
    ...["osDiskSizeGb", "maxPods"].flatMap((name) =>
      [[64], "64"].map((value): Refused => [
        pool({ [name]: value }),
        `workerPools[0].${name} is ${JSON.stringify(value)}, expected`,
      ]),
    ),
    [pool({ maxUnavailable: true }), "maxUnavailable is true"],
    [pool({ maxPods: 10.5 }), "expected 10 to 253"],
    [pool({ maxPods: "many" }), "workerPools[0].maxPods is"],
    [
      { kubeadm: { kubeletExtraArgs: { "max-pods": "50" } }, ...pool({ maxPods: 30 }) },
      "config rm --path kubeadm.kubeletExtraArgs.max-pods",
    ],
    [
      pool({ ephemeralOsDisk: true }),
      "workerPools[0].ephemeralOsDisk is true, expected one of CacheDisk, ResourceDisk, NvmeDisk",
    ],
    [
      { ...pool({ ephemeralOsDisk: "CacheDisk" }), diskEncryptionSetId },
      "workerPools[0].ephemeralOsDisk is set beside diskEncryptionSetId, expected encryptionAtHost too",
    ],
    [
      pool({ ephemeralOsDisk: "CacheDisk", spot: { evictionPolicy: "Deallocate" } }),
      "config set --path 'workerPools[0].spot.evictionPolicy' Delete",
    ],
    [pool({ spot: true }), "workerPools[0].spot is true"],
    [pool({ spot: {} }), "config set --path 'workerPools[0].spot.evictionPolicy' Delete"],
    [
      pool({ spot: { evictionPolicy: "Stop" } }),
      'workerPools[0].spot.evictionPolicy is "Stop", expected Delete or Deallocate',
    ],
    [pool({ spot: { evictionPolicy: "deallocate" } }), "spot.evictionPolicy' Deallocate"],
    [
      pool({ spot: { evictionPolicy: "Delete", maxPrice: -1 } }),
      "config rm --path 'workerPools[0].spot.maxPrice'",
    ],
    [pool({ spot: { evictionPolicy: "Delete", maxPrice: 0.000001 } }), "five decimals at most"],
    [pool({ spot: { evictionPolicy: "Delete", maxPrice: "cheap" } }), 'maxPrice is "cheap"'],
    [
      pool({ spot: { evictionPolicy: "Delete", price: 1 } }),
      "workerPools[0].spot.price is not a known name",
    ],
    [
      pool({
        spot: { evictionPolicy: "Delete" },
        labels: { "kubernetes.azure.com/scalesetpriority": "spot" },
      }),
      "machines of a spot pool have this one by themselves",
    ],
    [
      pool({
        spot: { evictionPolicy: "Delete" },
        taints: [{ key: "kubernetes.azure.com/scalesetpriority", effect: "NoSchedule" }],
      }),
      "config rm --path 'workerPools[0].taints[0]'",
    ],
    [pool({ labels: { "a b": "c" } }), 'has the key "a b"'],
    [pool({ labels: { "a/b/c": "d" } }), 'has the key "a/b/c"'],
    [pool({ labels: { "Example.com/a": "b" } }), "perhaps with a domain"],
    [pool({ labels: { "topology.kubernetes.io/zone": "1" } }), "Kubernetes keeps kubernetes.io"],
    [
      pool({ labels: { "node-role.kubernetes.io/control-plane": "" } }),
      "another role, since control planes are known by this one",
    ],
    [
      taint({ key: "node-role.kubernetes.io/control-plane" }),
      "another role, since control planes are known by this one",
    ],
    [
      pool({ labels: { "node-role.kubernetes.io/master": "" } }),
      "another role, since control planes are known by this one",
    ],
    [pool({ labels: { "k8s.io/team": "a" } }), "Kubernetes keeps kubernetes.io"],
    [pool({ labels: { team: "a b" } }), 'has the value "a b"'],
    [pool({ labels: { team: "a".repeat(64) } }), "63 letters"],
    [pool({ labels: ["a"] }), 'workerPools[0].labels is ["a"]'],
    [pool({ labels: { team: { a: 1 } } }), "workerPools[0].labels.team is"],
    [taint({ effect: "NoScheduling" }), "one of NoSchedule, PreferNoSchedule, NoExecute"],
    [
      taint({ effect: "noexecute" }),
      "config set --path 'workerPools[0].taints[0].effect' NoExecute",
    ],
    [taint({ effect: undefined }), "workerPools[0].taints[0].effect is not set"],
    [taint({ key: undefined }), 'workerPools[0].taints[0] has the key ""'],
    [taint({ value: "a b" }), 'has the value "a b"'],
    [taint({ operator: "Exists" }), "workerPools[0].taints[0].operator is not a known name"],
    [pool({ taints: { gpu: "NoSchedule" } }), "a list of key, value and effect"],
    [
      pool({
        taints: [
          { key: "a", effect: "NoSchedule" },
          { key: "a", value: "b", effect: "NoSchedule" },
        ],
      }),
      "workerPools[0].taints[1] repeats a with NoSchedule",
    ],
  ],
  accepted: [
    ["no pools", { workerPools: [] }],
    ["a pool on Arm", pool({ size: "Standard_D4ps_v6" })],
    ["a pool of one small GPU each", pool({ size: "Standard_NC4as_T4_v3" })],
    ["a pool of large GPUs", pool({ size: "Standard_NC24ads_A100_v4" })],
    ["a pool of eight GPUs each", pool({ size: "Standard_ND96isr_H100_v5" })],
    ["an empty pool", pool({ count: 0 })],
    ["a pool that changes two machines at a time", pool({ maxUnavailable: 2 })],
    ["a pool with less than a control plane needs", pool({ size: "Standard_B1ls" })],
    ["a pool with another disk", pool({ osDiskSku: "StandardSSD_LRS", osDiskSizeGb: 256 })],
    [
      "a pool without Premium disks that wants none",
      pool({ size: "Standard_E4_v5", osDiskSku: "StandardSSD_LRS" }),
    ],
    [
      "spot machines with a disk of the host's",
      pool({ ephemeralOsDisk: "NvmeDisk", spot: { evictionPolicy: "Delete" } }),
    ],
    [
      "a local disk that a host encrypts by a key of the operator's",
      { ...pool({ ephemeralOsDisk: "NvmeDisk" }), diskEncryptionSetId, encryptionAtHost: true },
    ],
    ["spot machines", pool({ spot: { evictionPolicy: "Deallocate" } })],
    [
      "spot machines at a price that pulumi config set --path keeps as text",
      pool({ spot: { evictionPolicy: "Delete", maxPrice: "0.01538" } }),
    ],
    ["a pool with the smallest disk", pool({ osDiskSizeGb: 30 })],
    ["a pool with the largest disk", pool({ osDiskSizeGb: 4095 })],
    ["a pool of as many pods as a node has addresses for", pool({ maxPods: 253 })],
    ["a pool of as few as a node needs", pool({ maxPods: 10 })],
    ["a pool of more, in a network of one's own", { cni: "none", ...pool({ maxPods: 500 }) }],
    ["a name of 16 characters", pool({ name: "a".repeat(16) })],
    ["a pool in one zone", pool({ zones: ["3"] })],
    [
      "labels that operators are meant to write",
      pool({
        labels: {
          "node-role.kubernetes.io/gpu": "",
          "example.com/team": "a",
          "node.kubernetes.io/exclude-from-external-load-balancers": "true",
        },
      }),
    ],
    ["a label that YAML took for a number", pool({ labels: { generation: 2 } })],
    [
      "a taint with two effects",
      pool({
        taints: [
          { key: "a", effect: "NoSchedule" },
          { key: "a", effect: "NoExecute" },
        ],
      }),
    ],
  ],
};

export const sizeCases: Cases = {
  refused: [
    [{ controlPlaneSize: "Standard_D4_v3" }, "config set controlPlaneSize Standard_D4s_v3"],
    [{ controlPlaneSize: "Standard_A2_v2" }, "or osDiskSku StandardSSD_LRS"],
    [{ controlPlaneSize: "2" }, "the name of a VM size"],
    ...["D8s_v5", "standard_d8s_v5", "STANDARD_D8S_V5"].map((size): Refused => [
      { controlPlaneSize: size },
      "config set controlPlaneSize Standard_D8s_v5",
    ]),
    [{ controlPlaneSize: "Standard_B1ms" }, "at least 2 processors"],
    [{ controlPlaneSize: "Standard_E4-1s_v5" }, "at least 2 processors"],
    [{ controlPlaneSize: "Standard_B2ts_v2" }, "1700 MB"],
  ],
  accepted: [
    ["control planes on Arm", { controlPlaneSize: "Standard_D2pds_v6" }],
    ["a size of the first families with Premium disks", { controlPlaneSize: "Standard_DS2_v2" }],
    [
      "a size without them where the disk needs none",
      { controlPlaneSize: "Standard_D4_v3", osDiskSku: "StandardSSD_LRS" },
    ],
    ["a size with an accelerator", { controlPlaneSize: "Standard_NV36ads_A10_v5" }],
  ],
};
