import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { runConcurrently, withTimeLimit } from "../concurrency";

const never = (signal: AbortSignal) => sleep(60_000, undefined, { signal });

it("stops what is under way when one thing fails, and says what failed", async () => {
  const stopped = jest.fn();

  await expect(
    runConcurrently(new AbortController().signal, [
      (signal) => never(signal).catch(stopped),
      () => Promise.reject(new Error("no room")),
    ]),
  ).rejects.toThrow("no room");
  expect(stopped).toHaveBeenCalled();
});

it("gives what each of them gave, in their order", async () => {
  const slow = async () => (await sleep(20), "slow");

  expect(await runConcurrently(new AbortController().signal, [slow, async () => 2])).toEqual([
    "slow",
    2,
  ]);
});

it("ends as interrupted when the user says so", async () => {
  const user = new AbortController();
  const going = runConcurrently(user.signal, [never]);

  user.abort();

  await expect(going).rejects.toThrow("interrupted");
});

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
