import { execFile } from "node:child_process";
import { basename } from "node:path";
import { promisify } from "node:util";
import { RunError } from "@pulumi/pulumi/errors";

import { ArmClient } from "../../components/azure/resource-manager";
import { endpointOf } from "../local-azure/daemon/attachment";
import { type AzureResources, getAzureResources } from "../doctor/picture/azure";
import { getClusterAnswer } from "../doctor/picture/cluster";
import { pictureOf, summaryOf } from "../doctor/picture/model";
import { draw } from "../doctor/picture/svg/draw";
import type { Exported } from "../recover/azure";
import { Progress } from "../shared/progress";
import { UserError } from "../shared/user-error";
import { perform, typed, writeOutput } from "./command";
import { clusterOf, readStack, stackOf, type StackWords } from "./stack";

interface Words extends StackWords {
  readonly output?: string;
}

async function run({ output, ...words }: Words, signal: AbortSignal): Promise<void> {
  // A request that is under way is not worth its answer.
  signal.addEventListener("abort", () => setTimeout(() => process.exit(130), 1000).unref());
  const picture = await new Progress(process.stderr).during(
    "looking at Azure and the cluster",
    async () => {
      const { stack, cluster } = await clusterOf(words, signal);
      const seen = await Promise.all([resourcesOf(words, signal), getClusterAnswer(cluster)]);
      return pictureOf({ stack, azure: seen[0], cluster: seen[1] });
    },
  );
  const file = writeOutput(output ?? `${basename(picture.stack)}.svg`, draw(picture));
  process.stdout.write(`stack ${picture.stack}: ${summaryOf(picture)}\n${file}\n`);
}

async function resourcesOf(words: StackWords, signal: AbortSignal): Promise<AzureResources> {
  const { arm, group } = await azureOf(words, signal);
  const resources = await getAzureResources(arm, group).catch((error: unknown) => {
    throw RunError.isInstance(error) ? new UserError(error.message) : error;
  });
  if (resources !== undefined) return resources;
  throw new UserError(`Azure has no ${group}: there is nothing to draw; pulumi up makes it again`);
}

/** Where Azure has what a stack has made. */
interface AzureOfStack {
  readonly arm: ArmClient;
  /** The id of its resource group. */
  readonly group: string;
}

/**
 * Resource Manager for the stack that is meant, by the az of this shell unless it is a rehearsal's.
 *
 * @throws UserError when its state names no resource group, or az has no login
 */
async function azureOf(words: StackWords, signal: AbortSignal): Promise<AzureOfStack> {
  const stack = stackOf(words, signal);
  const { deployment } = JSON.parse(
    await readStack(stack, "state", ["stack", "export"]),
  ) as Exported;
  // A group that others have made is not in the state, and the API's balancer is in it.
  const inGroup = deployment.resources?.find(
    ({ type }) =>
      type === "azure-native:resources:ResourceGroup" ||
      type === "azure-native:network:LoadBalancer",
  );
  const [group] = inGroup?.id?.split("/providers/") ?? [];
  if (group === undefined) {
    throw new UserError(
      `stack ${stack.name} has no resource group: run pulumi up until it ends well`,
    );
  }
  // The local Azure takes every token.
  if (stack.ports) return { arm: new ArmClient(endpointOf(stack.ports), "rehearsal"), group };
  const subscription = group.split("/")[2]!;
  // One after the other: without a login both fail, and it is the token that says so.
  const login = ["account", "get-access-token", "--subscription", subscription];
  const token = await az(...login, "--query", "accessToken");
  const endpoint = await az("cloud", "show", "--query", "endpoints.resourceManager");
  return { arm: new ArmClient(endpoint.replace(/\/+$/, ""), token), group };
}

/** One value, as Azure's command line answers. */
async function az(...words: string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)("az", [...words, "--output", "tsv"]);
    return stdout.trim();
  } catch (error) {
    const { code, stderr = "" } = error as { code?: unknown; stderr?: string };
    throw new UserError(
      code === "ENOENT"
        ? "az is not on the PATH, and Azure is asked with its login: https://learn.microsoft.com/cli/azure/install-azure-cli; then az login"
        : `Azure is asked with the login of az, and az ${words.slice(0, 2).join(" ")} has failed: ${stderr.trim()}\n  az login, with a user that may read the stack's subscription`,
    );
  }
}

perform(
  (signal) =>
    // Where Azure has refused one list, another may be asked for again for minutes.
    run(typed<Words>().options, signal).finally(() => setTimeout(process.exit, 500).unref()),
  2,
);
