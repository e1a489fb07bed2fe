import { Faults } from "../../arm/faults/faults";
import { withRetries } from "../../provider/operations";
import { createResources, newArm, ManualClock, refusedBy } from "../support/arm/fixture";
import { valid } from "../support/arm/valid-resources";

const busy = (times: number, code = "TooManyRequests", status = 429) =>
  new Faults([{ method: "PUT", id: "virtualNetworks/vnet$", times, code, status }]);

const puts = (arm: ReturnType<typeof newArm>["arm"]) =>
  arm.log.read().filter(({ id }) => id === valid.vnet[0]).length;

it.each([
  [3, "not refused"],
  [4, "TooManyRequests"],
])("retries up to three times when Azure is busy %i times", async (times, end) => {
  const clock = new ManualClock();
  const { arm } = newArm({ clock, faults: busy(times) });
  await createResources(arm, "group");

  const request = refusedBy(withRetries(arm, () => arm.put(...valid.vnet)));

  expect(await clock.until(request)).toContain(end);
  expect(puts(arm)).toBe(4);
});

it.each([
  ["AnotherOperationInProgress", 2],
  ["OperationNotAllowed", 1],
])("after a conflict with code %s, has made %i requests", async (code, requests) => {
  const clock = new ManualClock();
  const { arm } = newArm({ clock, faults: busy(1, code, 409) });
  await createResources(arm, "group");

  await clock.until(refusedBy(withRetries(arm, () => arm.put(...valid.vnet))));

  expect(puts(arm)).toBe(requests);
});

// What azcore, by which azure-native asks, retries (policy.RetryOptions.StatusCodes).
it.each([
  ...[408, 429, 500, 502, 503, 504].map((status) => [status, 2] as const),
  ...[400, 403, 409, 501].map((status) => [status, 1] as const),
])("after an answer of status %i, has made %i requests", async (status, requests) => {
  const clock = new ManualClock();
  const { arm } = newArm({ clock, faults: busy(1, "Refused", status) });
  await createResources(arm, "group");

  await clock.until(refusedBy(withRetries(arm, () => arm.put(...valid.vnet))));

  expect(puts(arm)).toBe(requests);
});

it("scales its waits of 20, 60 and 120 seconds like the durations", async () => {
  const clock = new ManualClock();
  const { arm } = newArm({ clock, faults: busy(9) });
  await createResources(arm, "group");
  arm.durations.set({ factor: 0.5 });
  const before = clock.now().getTime();

  await clock.until(refusedBy(withRetries(arm, () => arm.put(...valid.vnet))));

  expect(clock.now().getTime() - before).toBe(100_000);
});

it.each([
  ["before Azure had the request", "request"],
  ["after Azure had done it", "answer"],
] as const)("retries when the connection was lost %s", async (_, lost) => {
  const clock = new ManualClock();
  const faults = new Faults([{ method: "PUT", id: "virtualNetworks/vnet$", lost }]);
  const { arm } = newArm({ clock, faults });
  await createResources(arm, "group");

  await clock.until(withRetries(arm, () => arm.put(...valid.vnet)));

  expect(puts(arm)).toBe(lost === "request" ? 1 : 2);
});

it.each([
  [7, 7_000],
  [120, 120_000],
  [121, 0],
])("with Retry-After %i, retries after %i milliseconds", async (retryAfter, milliseconds) => {
  const clock = new ManualClock();
  const fault = { method: "PUT", id: "virtualNetworks/vnet$", status: 429, retryAfter } as const;
  const { arm } = newArm({ clock, faults: new Faults([fault]) });
  await createResources(arm, "group");
  arm.durations.set({ factor: 1 });
  arm.durations.milliseconds = () => 0;
  const before = clock.now().getTime();

  await clock.until(refusedBy(withRetries(arm, () => arm.put(...valid.vnet))));

  expect(clock.now().getTime() - before).toBe(milliseconds);
  expect(puts(arm)).toBe(milliseconds > 0 ? 2 : 1);
});

it("does not retry after an abort", async () => {
  const clock = new ManualClock();
  const { arm } = newArm({ clock, faults: busy(1) });
  await createResources(arm, "group");

  await clock.until(refusedBy(withRetries(arm, () => arm.put(...valid.vnet), AbortSignal.abort())));

  expect(puts(arm)).toBe(1);
});
