import { spawn, spawnSync } from "node:child_process";

import { loadTypeScript } from "../../shared/checkout";
import { Interrupted, UserError } from "../../shared/user-error";

/** Administrators' commands lie where a user's PATH often does not lead. */
export const environment: NodeJS.ProcessEnv = {
  ...process.env,
  PATH: `${process.env.PATH ?? ""}:/usr/sbin:/sbin`,
};

/**
 * Namespaces for the network, for processes and for mounts: when their first process ends, however
 * it ends, the kernel ends the others in them, and with the last goes everything they made.
 */
const namespaces = [
  "--net",
  "--mount",
  "--pid",
  "--fork",
  "--mount-proc",
  "--kill-child=SIGKILL",
  ...(process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"]),
];

const commands = { ip: "iproute2", iptables: "iptables", nft: "nftables", unshare: "util-linux" };

/** Why this machine cannot have a lab, with how to fix it; undefined when it can. */
export function labProblem(): string | undefined {
  for (const [command, debianPackage] of Object.entries(commands)) {
    if (spawnSync(command, ["--version"], { env: environment }).error) {
      return `${command} is missing: apt-get install --no-install-recommends ${debianPackage}`;
    }
  }
  const tried = "mount -t tmpfs tmpfs /run && ip netns add lab && nft list ruleset";
  const { status, stderr } = spawnSync("unshare", [...namespaces, "sh", "-ec", tried], {
    env: environment,
    encoding: "utf8",
  });
  return status === 0
    ? undefined
    : `it needs root or user namespaces, and the kernel said: ${stderr.trim()}`;
}

export type Message<T> = { readonly progress: string } | { readonly result: T };

/**
 * Runs a file in namespaces of its own and returns what it sends as its result. It
 * gets `task`; when this process ends, so does it.
 */
export async function inLab<T>(
  file: string,
  task: object,
  { onProgress, signal }: { onProgress: (detail: string) => void; signal: AbortSignal },
): Promise<T> {
  if (signal.aborted) throw new Interrupted();
  const program = [process.execPath, ...loadTypeScript, file, JSON.stringify(task)];
  // A group of its own: the terminal's Ctrl-C comes to it through us.
  const lab = spawn("unshare", [...namespaces, ...program], {
    cwd: __dirname,
    env: environment,
    stdio: ["ignore", "inherit", "pipe", "ipc"],
    detached: true,
  });
  const end = (): void => {
    if (lab.pid !== undefined) process.kill(-lab.pid, "SIGKILL");
  };
  signal.addEventListener("abort", end, { once: true });
  let result: { readonly value: T } | undefined;
  let stderrTail = "";
  lab.on("message", (message: Message<T>) => {
    if ("progress" in message) onProgress(message.progress);
    else result = { value: message.result };
  });
  lab.stderr?.on("data", (text: Buffer) => (stderrTail = `${stderrTail}${text}`.slice(-4000)));
  const code = await new Promise<number | null>((resolve, reject) => {
    lab.on("error", reject);
    lab.on("close", resolve);
  }).finally(() => signal.removeEventListener("abort", end));
  if (signal.aborted) throw new Interrupted();
  if (result === undefined) {
    throw new UserError(`the lab of kube-proxy ended with ${code}:\n${stderrTail.trim()}`);
  }
  return result.value;
}
