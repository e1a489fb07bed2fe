import { idIn } from "../sample";
import type { Cases, Refused } from "../stack";

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
      "a registry by its address",
      { registries: ["ourimages.azurecr.io"] },
      'registries[0] is "ourimages.azurecr.io", expected Azure\'s id of a container registry',
    ],
    [
      "a registry whose name Azure would not take",
      { registries: [registry("images", "our-images")] },
      "Azure's id of a container registry",
    ],
    ["a registry twice", { registries: [...registries, registry("Images")] }, "each registry once"],
    [
      "a registry that goes with the cluster",
      { clusterName: "mine", registries: [registry("Mine")] },
      "in another resource group than mine",
    ],
    [
      "kubelets' identity by its client id",
      { registries, kubeletIdentityId: "5f0b7d9e-8c1a-4a53-9d0e-2f6c3b1a7e88" },
      "Azure's id of a user-assigned identity",
    ],
    [
      "kubelets' identity that goes with the cluster",
      { clusterName: "mine", registries, kubeletIdentityId: identity("mine") },
      "in another resource group than mine",
    ],
    [
      "the cloud provider's identity for kubelets, which workers would have",
      { registries, identityId: identity("theirs"), kubeletIdentityId: identity("Theirs") },
      "whose rights each worker would have",
    ],
    [
      "kubelets' identity that is for nothing",
      { kubeletIdentityId: identity("theirs") },
      "is set without registries",
    ],
    [
      "registries beside another configuration of kubelets",
      {
        registries,
        kubeadm: {
          kubeletExtraArgs: { "image-credential-provider-config": "/etc/mine.yaml" },
        },
      },
      "no configuration of your own",
    ],
    [
      "registries beside a folder of other programs",
      {
        registries,
        kubeadm: { kubeletExtraArgs: { "image-credential-provider-bin-dir": "/opt/mine" } },
      },
      "kubeadm.kubeletExtraArgs.image-credential-provider-bin-dir is set beside registries",
    ],
    ...both.map(([one, other]): Refused => [
      `${one} alone`,
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

const to = (host: string, change: object = {}) => ({
  registryCredentials: { [host]: { username: "robot", password: "hush", ...change } },
});

/** All of them encrypted. */
export const registryCredentialCases: Cases = {
  refused: [
    [
      "a registry with its scheme",
      to("https://ghcr.io"),
      'registryCredentials["https://ghcr.io"] is no registry\'s name, expected a host',
    ],
    ["a registry that no image can begin with", to("GHCR.io"), "a host in lower case"],
    [
      "a registry that kubelets log in to by their identity",
      { registries: [registry("images", "OurImages")], ...to("ourimages-x7f2.azurecr.io") },
      "since kubelets log in to those by their identity",
    ],
    [
      "a path of one",
      { registries, ...to("ourimages.azurecr.io/team") },
      "since kubelets log in to those by their identity",
    ],
    ...["docker.io", "index.docker.io/team"].map((host): Refused => [
      `${host} beside a mirror that dockerd would show its password`,
      { mirror: "https://mirror.example", containerRuntime: "cri-dockerd", ...to(host) },
      "is set beside mirror and containerRuntime cri-dockerd, expected another container runtime",
    ]),
    ["nobody", to("ghcr.io", { username: "" }), 'registryCredentials["ghcr.io"].username is empty'],
    ["no password", to("ghcr.io", { password: "" }), "a user and a password or token"],
    [
      "what it would not use",
      to("ghcr.io", { email: "me@example.com" }),
      "has something else than username and password",
    ],
    [
      "a password alone",
      { registryCredentials: { "ghcr.io": "hush" } },
      "expected username and password by registry",
    ],
    ["a text", { registryCredentials: "hush" }, "registryCredentials is no map"],
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
    ["a part of one at a port", to("registry.example:5000/team")],
    ["another of Azure's", { registries, ...to("theirs.azurecr.io") }],
  ],
};
