import { install, type InstallOptions, placesOf } from "../../local-azure/installs";
import { clusterTools, nodeTool } from "../../local-azure/tools";
import type { ControlPlane } from "./api-server";

/** Paths of the programs that a lab runs. */
export type LabBinaries = ControlPlane & { readonly "kube-proxy": string };

const names = ["etcd", "kube-apiserver", "kube-proxy"] as const;

/** The programs of a lab out of the cache, installed there first where they are missing. */
export async function labBinaries(options: InstallOptions): Promise<LabBinaries> {
  const tools = [...clusterTools, nodeTool].filter(({ binaries }) =>
    names.some((name) => binaries.includes(name)),
  );
  await install(tools, options);
  const places: Record<string, string> = Object.assign({}, ...tools.map((tool) => placesOf(tool)));
  return Object.fromEntries(names.map((name) => [name, places[name]])) as unknown as LabBinaries;
}
