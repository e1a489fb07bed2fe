import { parse } from "yaml";

import { cloudInitText } from "../../../../../components/machine/cloud-init-files";
import type { SimulatedMachine } from "../machine";
import { checkFirstBoot } from "./payload";
import type { Steps } from "./steps";

/** Whether a script is the one by which a machine becomes an image. */
export const isGeneralize = (script: string): boolean => script === cloudInitText("generalize.sh");

/** Says what first boot would have installed by the machine's customData, and switches the machine off. */
export async function generalize(machine: SimulatedMachine, steps: Steps): Promise<string> {
  await steps.step("first boot", () => checkFirstBoot(machine.vm, { files: [] }));
  machine.shutDown();
  return contentsOf(machine.vm.customData);
}

function contentsOf(customData = ""): string {
  const { write_files: files = [] } = parse(Buffer.from(customData, "base64").toString("utf8")) as {
    readonly write_files?: readonly { readonly path: string; readonly content: string }[];
  };
  const environment = files.find(({ path }) => path.endsWith("/first-boot.env"))?.content ?? "";
  const value = (name: string) => new RegExp(`^${name}='(.*)'$`, "m").exec(environment)?.[1] ?? "";
  const version = value("KUBERNETES_VERSION");
  return [
    `setting container-runtime ${value("CONTAINER_RUNTIME")}`,
    `setting mirror ${value("MIRROR")}`,
    ...["kubelet", "kubeadm", "kubectl"].map((name) => `package ${name} ${version}-1.1`),
    `image registry.k8s.io/kube-proxy:v${version} sha256:${"0".repeat(64)}`,
    "",
  ].join("\n");
}
