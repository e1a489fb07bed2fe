import { execFile } from "node:child_process";
import { cpus, release, totalmem } from "node:os";
import { promisify } from "node:util";

import { versions } from "../../components/versions";
import { environment } from "./enter";

const exec = promisify(execFile);

/** The first line that a program says of its version. */
const versionOf = async (command: string): Promise<string> =>
  (await exec(command, ["--version"], { env: environment })).stdout.split("\n")[0] ?? "";

/** What figures depend on, one line each. */
export async function machine(): Promise<string[]> {
  const [first] = cpus();
  return [
    `kube-proxy v${versions.kubernetes}`,
    `${cpus().length} processors (${first?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB of memory`,
    `Linux ${release().split("-")[0]}`,
    await versionOf("iptables"),
    await versionOf("nft"),
  ];
}
