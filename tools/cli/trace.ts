import { join } from "node:path";

import { checkout } from "../shared/checkout";
import { Progress } from "../shared/progress";
import { Interrupted, messageOf, UserError } from "../shared/user-error";
import { compareCommand, type CompareWords } from "../trace/commands/compare";
import { traceCommand, type TraceWords } from "../trace/commands/trace";
import { commandName, outliveReaders, typed } from "./command";

/** Exit codes: 2 is a mistake of the user's, 1 any other failure, 130 Ctrl-C. */
function failure(error: unknown): number {
  if (error instanceof Interrupted) return error.exitCode;
  const { code, syscall, stack } = error as NodeJS.ErrnoException;
  const isAboutFile = typeof code === "string" && typeof syscall === "string";
  const isForTheUser = error instanceof UserError || isAboutFile;
  process.stderr.write(`zoned: ${isForTheUser ? messageOf(error) : (stack ?? messageOf(error))}\n`);
  if (error instanceof UserError) return error.exitCode;
  return isAboutFile ? 2 : 1;
}

async function run(): Promise<void> {
  if (commandName() === "compare") {
    const { options, args } = typed<CompareWords>();
    if (options.virtualMachine && !options.measure) {
      throw new UserError("--virtual-machine says where to --measure: give both", 2);
    }
    return options.measure ? measured(args, options) : compareCommand(args, options);
  }
  const { options, args } = typed<TraceWords>();
  return traceCommand(args, options);
}

async function measured(
  paths: readonly string[],
  { virtualMachine }: Pick<CompareWords, "virtualMachine">,
): Promise<void> {
  if (paths.length > 0) {
    throw new UserError(`--measure makes its own dumps: leave out ${paths.join(", ")}`, 2);
  }
  // Loaded only here: counting dumps needs none of it.
  const { measure } =
    require("../lab/packets/measure/measure") as typeof import("../lab/packets/measure/measure");
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => controller.abort());
  }
  await measure(virtualMachine ? "virtualMachine" : "host", join(checkout, "docs"), {
    progress: new Progress(),
    signal: controller.signal,
  });
}

outliveReaders(2);
run().catch((error: unknown) => {
  process.exitCode = failure(error);
});
