import { setTimeout as sleep } from "node:timers/promises";

import { runConcurrently } from "../concurrency";

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
