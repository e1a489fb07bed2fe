import type { IncomingMessage } from "node:http";

import type { MachineMetadata } from "../../machines/qemu/network/metadata";
import { metadataAddress } from "../../machines/qemu/network/namespaces";
import type { View } from "../resources/resource";
import { machineMetadata } from "../../machines/qemu/network/network-view";

/**
 * What the environment of a process has in it that stands for one on this machine. The metadata
 * service's address can be none of this host's: Go programs ask for it by way of this server, and
 * say as its user on which machine they are.
 */
export const metadataProxy = (machine: string, port: number): { readonly HTTP_PROXY: string } => ({
  HTTP_PROXY: `http://${machine}@127.0.0.1:${port}`,
});

/** Whether a client takes this server for its way to the metadata service. */
export const isForMetadata = ({ url }: IncomingMessage): boolean =>
  url?.startsWith(`http://${metadataAddress}/`) ?? false;

/** The machine whose process this is, as its metadata service describes it. */
export function machineAsking(
  { headers }: IncomingMessage,
  view: View,
): MachineMetadata | undefined {
  const [, credentials = ""] = (headers["proxy-authorization"] ?? "").split(" ");
  const [name] = Buffer.from(credentials, "base64").toString().split(":");
  return machineMetadata(view).find(({ compute }) => compute["name"] === name);
}
