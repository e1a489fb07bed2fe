import * as authorization from "@pulumi/azure-native/authorization";

import { parseContainer } from "../settings/blob-container";
import type { Settings } from "../settings/settings";
import { azureCloudAt } from "./clouds";

/** The snapshots of a cluster, the oldest first; or why the login of this update does not see them. */
export type Listed =
  | { readonly names: readonly string[]; readonly unknown?: undefined }
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
    const names: string[] = [];
    for (let marker: string | undefined = ""; marker !== undefined;) {
      const query = new URLSearchParams({ restype: "container", comp: "list", prefix, marker });
      const answer: Response = await fetch(`${container}?${query}`, {
        headers: { authorization: `Bearer ${token}`, "x-ms-version": "2024-11-04" },
        signal: AbortSignal.timeout(secondsPerRequest * 1000),
      });
      const text = await answer.text();
      const code = answer.headers.get("x-ms-error-code") ?? "";
      if (code === "ContainerNotFound") return { names: [] };
      if (!answer.ok) return { unknown: refusal(answer.status, code) };
      names.push(...elements(text, "Name").map((name) => name.slice(prefix.length)));
      marker = elements(text, "NextMarker")[0];
    }
    return { names: names.filter((name) => /^\d{8}T\d{6}Z-\d+\.db$/.test(name)).sort() };
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
