import { endpointOf } from "../local-azure/daemon/attachment";
import { UserError } from "../shared/user-error";
import { perform, typed } from "./command";
import { stackOf } from "./stack";

interface Words {
  readonly state?: string;
  /** In milliseconds. */
  readonly notice?: number;
}

async function run(signal: AbortSignal): Promise<void> {
  const { options, args } = typed<Words>();
  const [what, machine, type, ...more] = args;
  if (what !== "event" || type === undefined || more.length > 0) {
    throw new UserError(
      `expected event, a machine and a type, got '${args.join(" ")}': npm run azure -- event zoned-local-workers-1 Redeploy`,
    );
  }
  const { ports } = stackOf({ state: options.state }, signal);
  const { notice } = options;
  const path = `/local/machines/${encodeURIComponent(machine!)}/events`;
  const answer = await fetch(`${endpointOf(ports!)}${path}`, {
    ...{ method: "POST", signal },
    body: JSON.stringify({ type, ...(notice !== undefined && { notice: notice / 1000 }) }),
  }).catch(() => {
    signal.throwIfAborted();
    throw new UserError("the local Azure does not answer: npm start");
  });
  const { id, error } = (await answer.json().catch(() => ({}))) as {
    id?: string;
    error?: { message: string };
  };
  if (id === undefined)
    throw new UserError(error?.message ?? `the local Azure says ${answer.status}`);
  process.stdout.write(`${type} of ${machine} is scheduled: event ${id}\n`);
}

perform(run, 2);
