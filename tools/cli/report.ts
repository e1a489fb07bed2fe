import { basename, resolve } from "node:path";

import { ApiError, NoAnswer } from "../../components/cluster/kubernetes-api";
import { checkCluster } from "../doctor/doctor";
import { checkLines, getInventory, inventoryLines, verdict } from "../doctor/report";
import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { UserError } from "../shared/user-error";
import { perform, typed, writeOutput } from "./command";
import { clusterOf, type StackWords } from "./stack";

const { version } = require(resolve(checkout, "package.json")) as { version: string };

/** Ids of subscriptions and machines, and where the API is. */
const withoutIds = (text: string, server: string): string =>
  text
    .replaceAll(new RegExp(`${new URL(server).hostname}(:\\d+)?( \\([^)]*\\))?`, "g"), "(API)")
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, "(id)");

/** A cluster that is sick may refuse what its nodes and add-ons are read from; how sick is known. */
function unread(error: unknown): string[] {
  if (!(error instanceof ApiError || error instanceof NoAnswer)) throw error;
  return ["## Inventory", "", `It could not be read: ${error.message}`];
}

interface Words extends StackWords {
  readonly output?: string;
}

async function run({ output, ...words }: Words, signal: AbortSignal): Promise<void> {
  const { stack, cluster } = await clusterOf(words, signal);
  const { health, inventory } = await new Progress(process.stderr).during(
    "looking at the cluster",
    async () => {
      const health = await checkCluster(cluster);
      if (!health.looked) throw new UserError(checkLines(health).join("\n"));
      const inventory = await getInventory(cluster).then(inventoryLines, unread);
      return { health, inventory };
    },
  );
  const lines = [
    `# Report of stack ${stack}`,
    "",
    `Made on ${health.time} by version ${version} of the program. It has no secret, no id and no address of the API; read it before you share it.`,
    "",
    "## Health",
    "",
    ...checkLines(health).map((line) => `- ${line}`),
    "",
    ...inventory,
  ];
  const text = withoutIds(`${lines.join("\n")}\n`, health.server);
  const file = writeOutput(output ?? `zoned-report-${basename(stack)}.md`, text);
  process.stdout.write(`stack ${stack}: ${verdict(health)}\n${file}\n`);
}

perform((signal) => run(typed<Words>().options, signal), 2);
