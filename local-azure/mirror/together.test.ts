import { setTimeout as sleep } from "node:timers/promises";

import { together } from "./together";

const never = (signal: AbortSignal) => sleep(60_000, undefined, { signal });

it("stops what is under way when one thing fails, and says what failed", async () => {
  const stopped = jest.fn();

  await expect(
    together(new AbortController().signal, [
      (signal) => never(signal).catch(stopped),
      () => Promise.reject(new Error("no room")),
    ]),
  ).rejects.toThrow("no room");
  expect(stopped).toHaveBeenCalled();
});

it("ends as interrupted when the user says so", async () => {
  const user = new AbortController();
  const going = together(user.signal, [never]);

  user.abort();

  await expect(going).rejects.toThrow("interrupted");
});
