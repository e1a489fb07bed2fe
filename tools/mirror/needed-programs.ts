import { current, releaseOf } from "../programs/releases";
import { kubernetesToolOf, type Tool } from "../programs/tools";
import { registryAddress } from "./images/provide-images";
import { hasKubernetesPackages } from "./packages/provide-packages";
import type { Sources } from "./sources";
import { programsInImages, programsInPackages, programsOfRelease } from "./mirrored-programs";

/** Programs to install first: kubeadm, which names the images, and those of all that is built. */
export async function neededPrograms(
  sources: Sources,
  kubernetes: readonly string[],
  cloudProvider = true,
): Promise<Tool[]> {
  const needed = kubernetes.map((version) => kubernetesToolOf(releaseOf(version)));
  const others = kubernetes.filter((version) => version !== current.version);
  const ofOthers = others.flatMap(programsOfRelease);
  for (const [registry, tools] of Object.entries(programsInImages)) {
    if (registry === "mcr.microsoft.com" && !cloudProvider) continue;
    if (await sources.answers(registryAddress(registry))) continue;
    needed.push(...tools, ...(registry === "registry.k8s.io" ? ofOthers : []));
  }
  if (!(await hasKubernetesPackages(sources, kubernetes)))
    needed.push(...programsInPackages, ...ofOthers);
  const last = (tool: Tool): number => Number(tool.name === "kubernetes-node");
  // It shares most packages with kubernetes, which are in Go's cache by then.
  const each = new Map(needed.map((tool) => [`${tool.name} ${tool.version}`, tool]));
  return [...each.values()].sort((a, b) => last(a) - last(b));
}
