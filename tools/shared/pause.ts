import { setTimeout as sleep } from "node:timers/promises";

import { Interrupted } from "./user-error";

/** Waits, unless the user does not want to wait any longer. */
export const pause = (milliseconds: number, signal?: AbortSignal): Promise<void> =>
  sleep(milliseconds, undefined, { signal }).catch(() => {
    throw new Interrupted();
  });
