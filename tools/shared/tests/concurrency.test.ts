import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { withTimeLimit } from "../time-limit";

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}

const endless = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

it("ends what takes too long, whatever is collected as garbage meanwhile", async () => {
  const { signal } = new AbortController();
  const limited = withTimeLimit(200, signal, endless);
  limited.catch(() => undefined);

  await setImmediate();
  collectGarbage();

  await expect(limited).rejects.toThrow("no answer within 0.2 s");
});

it("ends with the other signal", async () => {
  const user = new AbortController();
  const limited = withTimeLimit(60_000, user.signal, endless);

  user.abort(new Error("interrupted"));

  await expect(limited).rejects.toThrow("interrupted");
});
