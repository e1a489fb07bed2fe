import { parseRegistry } from "../azure-ids";
import { entry, Problem, findings, toRemove, toSet, toSetSecret, wants } from "../problem";
import type { Settings } from "../settings";
import { exampleId, identityIdProblems, idOfOthersProblems } from "./ids-of-others";

const exampleRegistry = exampleId("images/providers/Microsoft.ContainerRegistry/registries/images");
const exampleIdentity = exampleId(
  "identities/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubelets",
);

/** What is wrong with the registries that kubelets log in to, and with the identity by which they do. */
export function registryProblems(settings: Settings): Problem[] {
  const { registries, kubeletIdentityId } = settings;
  return [
    ...registries.flatMap((id, index) => problemsOf(settings, id, index)),
    ...(kubeletIdentityId === "" ? [] : identityProblems(settings)),
    ...providerProblems(settings),
  ];
}

const providerArguments = [
  "image-credential-provider-config",
  "image-credential-provider-bin-dir",
] as const;

/** A kubelet takes one configuration and one folder of programs, and does not start with one of the two. */
function providerProblems({
  registries,
  kubeadm,
}: Pick<Settings, "registries" | "kubeadm">): Problem[] {
  const [set, unset] = [true, false].map((isSet) =>
    providerArguments.filter((name) => name in kubeadm.kubeletExtraArgs === isSet),
  );
  if (registries.length === 0 && unset!.length === 0) return [];
  return set!.map((name) => {
    const key = `kubeadm.kubeletExtraArgs.${name}`;
    return {
      key,
      ...(registries.length > 0
        ? {
            is: "is set beside registries",
            expected: "no configuration of your own, since a kubelet reads one",
          }
        : {
            is: `is set without ${unset!.join()}`,
            expected: "both or neither, since a kubelet does not start with one of them",
          }),
      fix: toRemove(key),
    };
  });
}

function problemsOf(settings: Settings, id: string, index: number): Problem[] {
  const key = `registries[${index}]`;
  const place = parseRegistry(id);
  const ofId = idOfOthersProblems(settings, {
    key,
    id,
    place,
    expected: "Azure's id of a container registry, as `az acr show --query id` prints it",
    what: "a registry",
    example: exampleRegistry,
  });
  const before = settings.registries.slice(0, index);
  const isTwice =
    place !== undefined && before.some((other) => other.toLowerCase() === id.toLowerCase());
  return isTwice
    ? [{ key, is: `is ${id} again`, expected: "each registry once", fix: toRemove(key) }, ...ofId]
    : ofId;
}

function identityProblems(settings: Settings): Problem[] {
  const { registries, kubeletIdentityId, identityId } = settings;
  const key = "kubeletIdentityId";
  return findings(
    ...identityIdProblems(settings, key, kubeletIdentityId, exampleIdentity),
    kubeletIdentityId.toLowerCase() === identityId.toLowerCase() &&
      wants(
        key,
        kubeletIdentityId,
        "another identity than identityId, whose rights each worker would have",
        exampleIdentity,
      ),
    registries.length === 0 && {
      key,
      is: "is set without registries",
      expected: "the registries that kubelets log in to by it",
      fix: toRemove(key),
    },
  );
}

const setting = "registryCredentials";

const host = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d+)?(\/[a-z0-9._/-]*[a-z0-9])?$/;

/** A kubelet looks for docker.io/team/app by that name, and then for index.docker.io alone. */
export const lookedUpAs = (host: string): string =>
  host === "docker.io" ? "index.docker.io" : host.replace(/^index\.docker\.io\//, "docker.io/");

/** What is wrong with the credentials of registries. No password appears in a message. */
export function registryCredentialProblems(settings: Settings): Problem[] {
  const all = Object.entries(settings.registryCredentials);
  return all.flatMap(([server, login], index): Problem[] => {
    const key = entry(setting, server);
    const before = all.slice(0, index).map(([other]) => other);
    const same = before.find((other) => lookedUpAs(other) === lookedUpAs(server));
    const empty = (["username", "password"] as const).find((name) => login[name] === "");
    return findings(
      !host.test(server) && {
        key,
        is: "is no registry's name",
        expected:
          "a host in lower case, with its port and a path where it has them, and without https://, as images begin with it, such as ghcr.io",
        fix: toRemove(key),
      },
      same !== undefined && {
        key,
        is: `is ${same} again`,
        expected: "each registry once, since kubelets have one login for both names",
        fix: toRemove(key),
      },
      hasIdentity(settings, server) && {
        key,
        is: "is a registry of registries, too",
        expected: "one of the two, since kubelets log in to those by their identity",
        fix: toRemove(key),
      },
      settings.mirror !== "" &&
        settings.containerRuntime === "cri-dockerd" &&
        /^(index\.)?docker\.io(\/|$)/.test(server) && {
          key,
          is: "is set beside mirror and containerRuntime cri-dockerd",
          expected:
            "another container runtime, since dockerd asks the mirror for images of Docker Hub, and shows it this password where it asks for one",
          fix: toSet("containerRuntime", "containerd"),
        },
      empty !== undefined && {
        key: `${key}.${empty}`,
        is: "is empty",
        expected: "a user and a password or token that may pull",
        fix: toRemove(key),
      },
    );
  });
}

/** A registry's server may have a hash after its name. */
const hasIdentity = ({ registries }: Pick<Settings, "registries">, server: string): boolean =>
  registries.some((id) => {
    const name = parseRegistry(id)?.name.toLowerCase();
    return name !== undefined && RegExp(`^${name}(-[a-z0-9]+)?\\.azurecr\\.\\w+(/|$)`).test(server);
  });

/** Whose passwords are in the stack's file for all to read. */
export const readableCredentialProblems = ({
  registryCredentials,
}: Pick<Settings, "registryCredentials">): Problem[] =>
  Object.entries(registryCredentials)
    .filter(([, { password }]) => password !== "")
    .map(([server]) => {
      const key = `${entry(setting, server)}.password`;
      return {
        key,
        is: "is readable in the stack's file",
        expected:
          "an encrypted value, and another password, since this one may be in the file's history",
        fix: toSetSecret(key),
      };
    });
