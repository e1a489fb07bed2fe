import { entry, Problem, toRemove, toSetSecret } from "../problem";
import { parseRegistry } from "../registry-id";
import type { Settings } from "../settings";

const setting = "registryCredentials";

const host = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d+)?(\/[a-z0-9._/-]*[a-z0-9])?$/;

/** What is wrong with the credentials of registries. No password appears in a message. */
export function registryCredentialProblems(settings: Settings): Problem[] {
  return Object.entries(settings.registryCredentials).flatMap(([server, login]): Problem[] => {
    const key = entry(setting, server);
    const empty = (["username", "password"] as const).find((name) => login[name] === "");
    const problems: (Problem | false)[] = [
      !host.test(server) && {
        key,
        is: "is no registry's name",
        expected:
          "a host in lower case, with its port and a path where it has them, and without https://, as images begin with it, such as ghcr.io",
        fix: toRemove(key),
      },
      hasIdentity(settings, server) && {
        key,
        is: "is a registry of registries, too",
        expected: "one of the two, since kubelets log in to those by their identity",
        fix: toRemove(key),
      },
      empty !== undefined && {
        key: `${key}.${empty}`,
        is: "is empty",
        expected: "a user and a password or token that may pull",
        fix: toRemove(key),
      },
    ];
    return problems.filter((problem) => problem !== false);
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
