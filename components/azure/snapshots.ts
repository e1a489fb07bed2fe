import * as authorization from "@pulumi/azure-native/authorization";

import { parseContainer } from "../settings/azure-ids";
import type { Settings } from "../settings/settings";
import { fetch } from "../settings/shell-proxy";
import { azureCloudAt } from "./clouds";

/** A snapshot, and what it is of, as the control plane that saved it has noted. */
export interface Snapshot {
  readonly name: string;
  /** Version of the etcd that wrote it. */
  readonly etcd?: string;
}

/** The snapshots of a cluster, the oldest first; or why the login of this update does not see them. */
export type Listed =
  | { readonly snapshots: readonly Snapshot[]; readonly unknown?: undefined }
  | { readonly unknown: string };

type BackupSettings = Pick<Settings, "etcdBackups" | "resourceManagerEndpoint">;

/** The container's address; empty for a folder of the control plane. */
export function containerAddress({ etcdBackups, resourceManagerEndpoint }: BackupSettings): string {
  const place = parseContainer(etcdBackups?.container ?? "");
  if (place === undefined) return "";
  const { storage } = azureCloudAt(resourceManagerEndpoint);
  const service = etcdBackups?.endpoint ?? `https://${place.account}.blob.${storage}`;
  return `${service}/${place.container}`;
}

const secondsPerRequest = 20;

/**
 * Asks the container itself. Who owns a subscription may not read a blob in it by that alone, and a
 * container may be reached from the cluster's network only.
 */
export async function listSnapshots(
  settings: Pick<Settings, "clusterName" | "etcdBackups" | "resourceManagerEndpoint">,
): Promise<Listed> {
  const prefix = `${settings.clusterName}/`;
  const container = containerAddress(settings);
  try {
    const { token } = await authorization.getClientToken({
      endpoint: "https://storage.azure.com",
    });
    const found: Snapshot[] = [];
    for (let marker: string | undefined = ""; marker !== undefined;) {
      const query = new URLSearchParams({
        ...{ restype: "container", comp: "list", prefix, marker },
        include: "metadata",
      });
      const answer: Response = await fetch(`${container}?${query}`, {
        headers: { authorization: `Bearer ${token}`, "x-ms-version": "2024-11-04" },
        signal: AbortSignal.timeout(secondsPerRequest * 1000),
      });
      const text = await answer.text();
      const code = answer.headers.get("x-ms-error-code") ?? "";
      if (code === "ContainerNotFound") return { snapshots: [] };
      if (!answer.ok) return { unknown: refusal(answer.status, code) };
      for (const [blob] of text.matchAll(/<Blob>.*?<\/Blob>/gs)) {
        const [name = ""] = elements(blob, "Name");
        found.push({ name: name.slice(prefix.length), etcd: elements(blob, "etcd")[0] });
      }
      marker = elements(text, "NextMarker")[0];
    }
    return {
      snapshots: found
        .filter(({ name }) => /^\d{8}T\d{6}Z-\d+\.db$/.test(name))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    };
  } catch (error) {
    const { message, cause } = error as Error;
    const why = cause instanceof Error ? cause.message : message;
    return { unknown: `${container} does not answer from here (${why})` };
  }
}

const refusal = (status: number, code: string): string =>
  status === 401 || status === 403
    ? `storage refuses this login (${status} ${code}), which has no role on the container, or comes from another network than it admits`
    : `storage answers ${status} ${code}`;

/** The texts of these elements of an answer, which has none within another of its name. */
const elements = (xml: string, name: string): string[] =>
  [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g"))].map(([, text]) =>
    text!.replaceAll("&amp;", "&"),
  );
