import { idIn } from "../sample";
import type { Cases, Refused } from "../stack";

const setIn = (group: string, name = "kubernetes"): string =>
  idIn(group, `Microsoft.Compute/diskEncryptionSets/${name}`);

export const diskEncryptionSetCases: Cases = {
  refused: [
    [{ diskEncryptionSetId: "kubernetes" }, "Azure's id of a disk encryption set"],
    [{ diskEncryptionSetId: setIn("keys", "my.set") }, "Azure's id of a disk encryption set"],
    [
      { clusterName: "mine", diskEncryptionSetId: setIn("Mine") },
      "in another resource group than mine",
    ],
    [{ encryptionAtHost: "always" }, "encryptionAtHost"],
  ],
  accepted: [
    ["a set of others", { diskEncryptionSetId: setIn("keys") }],
    [
      "a set in the group of others that the cluster is in",
      { resourceGroup: "platform", diskEncryptionSetId: setIn("platform") },
    ],
    ["hosts that encrypt, with Azure's keys", { encryptionAtHost: true }],
  ],
};

const identityIn = (group: string): string =>
  idIn(group, "Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes");

export const existingIdentityCases: Cases = {
  refused: [
    [
      { identityId: "5f0b7d9e-8c1a-4a53-9d0e-2f6c3b1a7e88" },
      "Azure's id of a user-assigned identity",
    ],
    [
      { clusterName: "mine", identityId: identityIn("Mine") },
      "in another resource group than mine",
    ],
  ],
  accepted: [
    ["an identity of others", { identityId: identityIn("identities") }],
    [
      "one whose snapshots go to a container",
      {
        identityId: identityIn("identities"),
        etcdBackups: {
          container: idIn(
            "backups",
            "Microsoft.Storage/storageAccounts/ours/blobServices/default/containers/etcd",
          ),
        },
      },
    ],
  ],
};

const imageIn = (group: string, version = "2026.1127.930"): string =>
  idIn(group, `Microsoft.Compute/galleries/zoned/images/node/versions/${version}`);

export const imageCases: Cases = {
  refused: [
    [{ image: "node" }, "Azure's id of one version of a gallery image"],
    [{ image: imageIn("images", "latest") }, "latest would differ"],
    [{ clusterName: "mine", image: imageIn("Mine") }, "in another resource group than mine"],
  ],
  accepted: [
    ["an image of a gallery", { image: imageIn("images") }],
    [
      "an image, and of which Ubuntu it is made",
      { image: imageIn("images"), imageVersion: "24.04.202501010" },
    ],
  ],
};

const subnet = (name: string, network = "spoke", group = "network"): string =>
  idIn(group, `Microsoft.Network/virtualNetworks/${network}/subnets/${name}`);

export const nodeSubnetCases: Cases = {
  refused: [
    [{ nodeSubnets: ["nodes"] }, "Azure's id of a subnet"],
    [
      { clusterName: "mine", nodeSubnets: [subnet("nodes", "spoke", "Mine")] },
      "in another resource group than mine",
    ],
    [
      { zones: ["1"], nodeSubnets: [subnet("one"), subnet("two")] },
      "one subnet for all zones, or one for each of the 1 in zones",
    ],
    [
      { zones: ["1", "2"], nodeSubnets: [subnet("one"), subnet("two", "other")] },
      "a subnet of the virtual network of the first one",
    ],
    [
      { nodeSubnets: [subnet("nodes")], serviceCidr: "10.244.0.0/16" },
      "a range apart from podCidr",
    ],
  ],
  accepted: [
    ["one subnet for all zones", { nodeSubnets: [subnet("nodes")] }],
    ["egress left to their network", { nodeSubnets: [subnet("nodes")], egress: "none" }],
    ["a private API there", { nodeSubnets: [subnet("nodes")], apiAccess: "private" }],
    ["a small networkCidr, unused", { nodeSubnets: [subnet("nodes")], networkCidr: "10.9.0.0/25" }],
    ["no networkCidr", { nodeSubnets: [subnet("nodes")], networkCidr: "" }],
    ["one for each zone", { nodeSubnets: ["a", "b", "c"].map((name) => subnet(name)) }],
    [
      "pods in the range of the network that is not made then",
      { nodeSubnets: [subnet("nodes")], podCidr: "172.16.0.0/16" },
    ],
    [
      "more machines than that would have room for",
      { nodeSubnets: [subnet("nodes")], workerPools: [{ name: "workers", count: 200 }] },
    ],
  ],
};

const registry = (group: string, name = "ourimages"): string =>
  idIn(group, `Microsoft.ContainerRegistry/registries/${name}`);
const identity = (group: string, name = "kubelets"): string =>
  idIn(group, `Microsoft.ManagedIdentity/userAssignedIdentities/${name}`);

const registries = [registry("images")];
const both = [
  ["image-credential-provider-config", "image-credential-provider-bin-dir"],
  ["image-credential-provider-bin-dir", "image-credential-provider-config"],
] as const;

export const registryCases: Cases = {
  refused: [
    [
      { registries: ["ourimages.azurecr.io"] },
      'registries[0] is "ourimages.azurecr.io", expected Azure\'s id of a container registry',
    ],
    [{ registries: [registry("images", "our-images")] }, "Azure's id of a container registry"],
    [{ registries: [...registries, registry("Images")] }, "each registry once"],
    [
      { clusterName: "mine", registries: [registry("Mine")] },
      "in another resource group than mine",
    ],
    [
      { registries, kubeletIdentityId: "5f0b7d9e-8c1a-4a53-9d0e-2f6c3b1a7e88" },
      "Azure's id of a user-assigned identity",
    ],
    [
      { clusterName: "mine", registries, kubeletIdentityId: identity("mine") },
      "in another resource group than mine",
    ],
    [
      { registries, identityId: identity("theirs"), kubeletIdentityId: identity("Theirs") },
      "whose rights each worker would have",
    ],
    [{ kubeletIdentityId: identity("theirs") }, "is set without registries"],
    [
      {
        registries,
        kubeadm: {
          kubeletExtraArgs: { "image-credential-provider-config": "/etc/mine.yaml" },
        },
      },
      "no configuration of your own",
    ],
    [
      {
        registries,
        kubeadm: { kubeletExtraArgs: { "image-credential-provider-bin-dir": "/opt/mine" } },
      },
      "kubeadm.kubeletExtraArgs.image-credential-provider-bin-dir is set beside registries",
    ],
    ...both.map(([one, other]): Refused => [
      { kubeadm: { kubeletExtraArgs: { [one]: "/mine" } } },
      `kubeadm.kubeletExtraArgs.${one} is set without ${other}, expected both or neither`,
    ]),
  ],
  accepted: [
    ["registries of others", { registries: [...registries, registry("images", "mirror01")] }],
    ["registries by an identity of others", { registries, kubeletIdentityId: identity("theirs") }],
    [
      "a program of one's own without registries",
      { kubeadm: { kubeletExtraArgs: Object.fromEntries(both) } },
    ],
    [
      "a registry in the group of others that the cluster is in",
      { resourceGroup: "platform", registries: [registry("platform")] },
    ],
  ],
};

const login = { username: "robot", password: "hush" };
const to = (host: string, change: object = {}) => ({
  registryCredentials: { [host]: { ...login, ...change } },
});

/** All of them encrypted. */
export const registryCredentialCases: Cases = {
  refused: [
    [
      to("https://ghcr.io"),
      'registryCredentials["https://ghcr.io"] is no registry\'s name, expected a host',
    ],
    [to("GHCR.io"), "a host in lower case"],
    [
      { registries: [registry("images", "OurImages")], ...to("ourimages-x7f2.azurecr.io") },
      "since kubelets log in to those by their identity",
    ],
    [
      { registries, ...to("ourimages.azurecr.io/team") },
      "since kubelets log in to those by their identity",
    ],
    ...["docker.io", "index.docker.io/team"].map((host): Refused => [
      { mirror: "https://mirror.example", containerRuntime: "cri-dockerd", ...to(host) },
      "is set beside mirror and containerRuntime cri-dockerd, expected another container runtime",
    ]),
    [
      { registryCredentials: { "docker.io": login, "index.docker.io": login } },
      'registryCredentials["index.docker.io"] is docker.io again',
    ],
    [
      { registryCredentials: { "index.docker.io/team": login, "docker.io/team": login } },
      'registryCredentials["docker.io/team"] is index.docker.io/team again',
    ],
    [to("ghcr.io", { username: "" }), 'registryCredentials["ghcr.io"].username is empty'],
    [to("ghcr.io", { password: "" }), "a user and a password or token"],
    [to("ghcr.io", { email: "me@example.com" }), "has something else than username and password"],
    [{ registryCredentials: { "ghcr.io": "hush" } }, "expected username and password by registry"],
    [{ registryCredentials: "hush" }, "registryCredentials is no map"],
  ],
  accepted: [
    ["another registry", to("ghcr.io")],
    [
      "one that dockerd asks no mirror for",
      { mirror: "https://mirror.example", containerRuntime: "cri-dockerd", ...to("ghcr.io") },
    ],
    [
      "Docker Hub beside a mirror, with containerd",
      { mirror: "https://mirror.example", containerRuntime: "containerd", ...to("docker.io") },
    ],
    [
      "Docker Hub and a part of it",
      { registryCredentials: { "docker.io": login, "index.docker.io/team": login } },
    ],
    ["a part of one at a port", to("registry.example:5000/team")],
    ["another of Azure's", { registries, ...to("theirs.azurecr.io") }],
  ],
};
