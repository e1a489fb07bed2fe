import { parseContainer } from "../azure-ids";
import { Problem, findings, toRemove, wants } from "../problem";
import type { Settings } from "../settings";
import { exampleId, idOfOthersProblems } from "./ids-of-others";

const example = exampleId(
  "backups/providers/Microsoft.Storage/storageAccounts/account/blobServices/default/containers/etcd",
);

const minutesOf = (every: string): number => {
  const [, number, unit] = /^(\d+)([mh])$/.exec(every) ?? [];
  return Number(number) * (unit === "h" ? 60 : 1);
};

const oneDay = 24 * 60;

/** What is wrong with where etcd is saved to, and restored from. */
export function etcdBackupProblems(settings: Settings): Problem[] {
  const { etcdBackups, resourceManagerEndpoint, restoreFrom, servicePrincipal } = settings;
  const { container, every = "1h", endpoint: given } = etcdBackups ?? {};
  // A signature or a login that was pasted with it is a secret.
  const endpoint = given?.replace(/\?.*$/s, "?…").replace(/\/\/.*@/s, "//…@");
  const minutes = minutesOf(every);
  return findings(
    !(minutes >= 5 && minutes <= oneDay) &&
      wants(
        "etcdBackups.every",
        every,
        "5m to 24h, in minutes or hours, since every snapshot is all of etcd",
        "1h",
      ),
    ...(container === undefined
      ? []
      : idOfOthersProblems(settings, {
          key: "etcdBackups.container",
          id: container,
          place: parseContainer(container),
          expected:
            "Azure's id of a blob container, as `az storage account show --query id` prints the first half of it",
          what: "a container",
          example,
        })),
    container !== undefined &&
      servicePrincipal !== undefined && {
        key: "etcdBackups.container",
        is: "is set beside servicePrincipalClientId",
        expected:
          "no container, since it is reached by the machines' managed identity, and with a service principal they have none",
        fix: toRemove("etcdBackups.container"),
      },
    endpoint !== undefined &&
      !/^https?:\/\/[\w.-]+(:\d+)?(\/[\w.-]+)*$/.test(endpoint) &&
      wants(
        "etcdBackups.endpoint",
        endpoint,
        "the address of the account's Blob service",
        "https://account.blob.core.windows.net",
      ),
    endpoint !== undefined &&
      /^http:[^?]*$/.test(endpoint) &&
      !resourceManagerEndpoint.startsWith("http:") &&
      wants(
        "etcdBackups.endpoint",
        endpoint,
        "an https:// address, since your access token and the machines' travel there (http:// only where resourceManagerEndpoint is on this machine)",
        endpoint.replace("http:", "https:"),
      ),
    endpoint !== undefined &&
      container === undefined && {
        key: "etcdBackups.endpoint",
        is: "is set without a container",
        expected: "etcdBackups.container beside it, since nothing else is reached there",
        fix: toRemove("etcdBackups.endpoint"),
      },
    container !== undefined &&
      !/^(|latest|\d{8}T\d{6}Z-\d+\.db)$/.test(restoreFrom) &&
      wants(
        "restoreFrom",
        restoreFrom,
        "empty, latest, or the name of a snapshot, such as 20261123T174128Z-51234.db",
        "latest",
      ),
    restoreFrom !== "" &&
      container === undefined && {
        key: "restoreFrom",
        is: `is ${restoreFrom}, and etcdBackups names no container`,
        expected: "etcdBackups.container beside it, where the snapshot is",
        fix: toRemove("restoreFrom"),
      },
  );
}
