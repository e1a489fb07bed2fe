import { kubernetesTool, type Tool } from "../programs/tools";
import { registryAddress } from "./images";
import { hasKubernetesPackages } from "./packages";
import type { Sources } from "./sources";
import { imageTools, packageTools } from "./tools";

/** What has to be installed first: kubeadm, which names the images, and what must be built. */
export async function neededTools(sources: Sources): Promise<Tool[]> {
  const needed = [kubernetesTool];
  for (const [registry, tools] of Object.entries(imageTools)) {
    if (!(await sources.answers(registryAddress(registry)))) needed.push(...tools);
  }
  if (!(await hasKubernetesPackages(sources))) needed.push(...packageTools);
  const last = (tool: Tool): number => Number(tool.name === "kubernetes-node");
  // It shares most with what is built first, and by then that is in Go's cache.
  return [...new Set(needed)].sort((a, b) => last(a) - last(b));
}
