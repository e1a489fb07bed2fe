import type { Body } from "../api";

export interface PodResult {
  readonly exitCode: number;
  readonly output: string;
}

const script = "/opt/zoned/etcd-snapshot.sh";

export type Architecture = "x64" | "Arm64";

const libraries = {
  x64: { folder: "x86_64-linux-gnu", loader: "ld-linux-x86-64.so.2" },
  Arm64: { folder: "aarch64-linux-gnu", loader: "ld-linux-aarch64.so.1" },
};

/** A machine's own loader and `chroot`, by which a container without either enters the machine. */
const entering = (
  root: string,
  { folder, loader }: (typeof libraries)[Architecture],
): readonly string[] => [
  `${root}/usr/lib/${folder}/${loader}`,
  "--library-path",
  `${root}/usr/lib/${folder}`,
  `${root}/usr/sbin/chroot`,
  root,
];

/**
 * What a pod ends with that runs a machine's script to save etcd; undefined for another pod.
 *
 * @param save what the script does there; nothing where the machine has no such script
 */
export async function runSnapshotPod(
  { spec }: Body,
  save: (() => Promise<void>) | undefined,
  architecture: Architecture = "x64",
): Promise<PodResult | undefined> {
  const [{ command = [], volumeMounts = [], securityContext }] = spec.containers;
  if (!command.includes(script)) return undefined;
  const root = volumeMounts.find(
    ({ name, readOnly }: Body) => !readOnly && isRoot(name, spec.volumes ?? []),
  )?.mountPath;
  const wanted = [...entering(root, libraries[architecture]), script, "save", "any"];
  if (root === undefined || wanted.join("\n") !== command.join("\n")) {
    return { exitCode: 128, output: `exec: "${command[0]}": no such file or directory\n` };
  }
  if (!securityContext?.privileged) {
    return { exitCode: 125, output: `cannot change root directory to '${root}'\n` };
  }
  if (!spec.hostNetwork) {
    return { exitCode: 1, output: "etcd of this machine does not answer\n" };
  }
  if (save === undefined) {
    return {
      exitCode: 127,
      output: `chroot: failed to run command '${script}': No such file or directory\n`,
    };
  }
  return save().then(
    () => ({ exitCode: 0, output: "" }),
    ({ message }: Error) => ({ exitCode: 1, output: `saving etcd\n${message}\n` }),
  );
}

const isRoot = (volume: string, volumes: readonly Body[]): boolean =>
  volumes.some(({ name, hostPath }) => name === volume && hostPath?.path === "/");
