import { parse } from "yaml";

import { cloudInitText, type Payload, type Task } from "../../../../../components/machine/payload";
import type { VirtualMachine } from "../../machines";
import { kubeconfigOf } from "../api";
import type { SimulatedMachine } from "../machine";
import type { Steps } from "./steps";

export const initFile = "/etc/zoned/kubeadm-init.yaml";
export const joinFile = "/etc/zoned/kubeadm-join.yaml";
export const discoveryFile = "/etc/zoned/discovery.conf";
export const encryptionFile = "/etc/zoned/encryption/secrets.yaml";
export const caFile = "/etc/kubernetes/pki/ca.crt";

const firstBootScript = "/opt/zoned/first-boot.sh";

export const hasTask = ({ tasks }: Payload, task: Task): boolean => tasks.includes(task);

/** The text of each file that the payload brings, by its path. */
export const filesOf = ({ files }: Pick<Payload, "files">): ReadonlyMap<string, string> =>
  new Map(files.map(({ path, content }) => [path, content]));

/** The text of a file that the payload must bring. */
export function fileOf(payload: Payload, path: string): string {
  const file = payload.files.find((candidate) => candidate.path === path);
  if (file === undefined) {
    throw new Error(
      `the payload of ${payload.machine} brings no ${path}; it brings ` +
        payload.files.map((candidate) => candidate.path).join(", "),
    );
  }
  return file.content;
}

/** The CAs that a machine is to trust, the first of which signs. */
export const trustedOf = (payload: Payload): string =>
  payload.role === "control-plane"
    ? fileOf(payload, caFile)
    : kubeconfigOf(fileOf(payload, discoveryFile)).ca;

/**
 * Fails as first boot would end with this customData: cloud-init never runs its script. What customData does
 * not bring, the step runs as its payload has it.
 */
export function checkFirstBoot(
  { name, customData }: VirtualMachine,
  payload: Pick<Payload, "files">,
): void {
  const problem = problemOf(customData, filesOf(payload));
  if (problem !== undefined) throw new Error(`first boot failed: customData of ${name} ${problem}`);
}

function problemOf(
  customData: string | undefined,
  brought: ReadonlyMap<string, string>,
): string | undefined {
  const text = Buffer.from(customData ?? "", "base64").toString("utf8");
  const [firstLine = ""] = text.split("\n", 1);
  if (firstLine.trim() !== "#cloud-config") {
    return `begins with "${firstLine.slice(0, 40)}", and cloud-init runs it only if its first line is "#cloud-config"`;
  }
  const { write_files: files = [], runcmd: commands = [] } = (parse(text) ?? {}) as {
    write_files?: readonly { path?: string; content?: string }[];
    runcmd?: readonly (string | readonly string[])[];
  };
  if (!files.some((file) => file.path === firstBootScript && file.content)) {
    return brought.has(firstBootScript)
      ? undefined
      : `writes no ${firstBootScript}, and the payload brings none`;
  }
  const isRun = commands.flat().some((word) => word.includes(firstBootScript));
  return isRun ? undefined : `writes ${firstBootScript}, but its runcmd does not run it`;
}

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
  const textOf = (name: string) =>
    files.find(({ path }) => path === `/etc/zoned/${name}`)?.content ?? "";
  const environment = textOf("first-boot.env");
  const value = (name: string) => new RegExp(`^${name}='(.*)'$`, "m").exec(environment)?.[1] ?? "";
  const version = value("KUBERNETES_VERSION");
  const images = [
    `registry.k8s.io/kube-proxy:v${version}`,
    ...textOf("add-on-images").split("\n").filter(Boolean),
  ];
  return [
    `setting container-runtime ${value("CONTAINER_RUNTIME")}`,
    `setting mirror ${value("MIRROR")}`,
    ...["kubelet", "kubeadm", "kubectl"].map((name) => `package ${name} ${version}-1.1`),
    ...images.map((image) => `image ${image} sha256:${"0".repeat(64)}`),
    "",
  ].join("\n");
}
