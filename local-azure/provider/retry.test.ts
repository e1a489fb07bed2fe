import { Faults } from "../resource-manager/faults";
import { build, newCloud, PlayedClock, refusedBy } from "../resource-manager/fixture";
import { sound } from "../resource-manager/sample";
import { retried } from "./retry";

const busy = (times: number, code = "TooManyRequests", status = 429) =>
  new Faults([{ method: "PUT", id: "virtualNetworks/vnet$", times, code, status }]);

const puts = (cloud: ReturnType<typeof newCloud>["cloud"]) =>
  cloud.log.read().filter(({ id }) => id === sound.vnet[0]).length;

it.each([
  [3, "not refused"],
  [4, "TooManyRequests"],
])("asks up to three times more when Azure is busy %i times", async (times, end) => {
  const clock = new PlayedClock();
  const { cloud } = newCloud({ clock, faults: busy(times) });
  await build(cloud, "group");

  const request = refusedBy(retried(cloud, () => cloud.put(...sound.vnet)));

  expect(await clock.until(request)).toContain(end);
  expect(puts(cloud)).toBe(4);
});

it.each([
  ["AnotherOperationInProgress", 2],
  ["OperationNotAllowed", 1],
])("meets a conflict of code %s with %i requests", async (code, requests) => {
  const clock = new PlayedClock();
  const { cloud } = newCloud({ clock, faults: busy(1, code, 409) });
  await build(cloud, "group");

  await clock.until(refusedBy(retried(cloud, () => cloud.put(...sound.vnet))));

  expect(puts(cloud)).toBe(requests);
});

it("waits at the pace of the cloud: 20 seconds, then 60, then 120", async () => {
  const clock = new PlayedClock();
  const { cloud } = newCloud({ clock, faults: busy(9) });
  await build(cloud, "group");
  cloud.durations.set({ factor: 0.5 });
  const before = clock.now().getTime();

  await clock.until(refusedBy(retried(cloud, () => cloud.put(...sound.vnet))));

  expect(clock.now().getTime() - before).toBe(100_000);
});

it.each([
  ["before Azure had the request", "request"],
  ["after Azure had done it", "answer"],
] as const)("asks again when the connection was lost %s", async (_, lost) => {
  const clock = new PlayedClock();
  const faults = new Faults([{ method: "PUT", id: "virtualNetworks/vnet$", lost }]);
  const { cloud } = newCloud({ clock, faults });
  await build(cloud, "group");

  await clock.until(retried(cloud, () => cloud.put(...sound.vnet)));

  expect(puts(cloud)).toBe(lost === "request" ? 1 : 2);
});

it.each([
  [7, 7_000],
  [120, 120_000],
  [121, 0],
])("with Retry-After %i, asks again after %i milliseconds", async (retryAfter, milliseconds) => {
  const clock = new PlayedClock();
  const fault = { method: "PUT", id: "virtualNetworks/vnet$", status: 429, retryAfter } as const;
  const { cloud } = newCloud({ clock, faults: new Faults([fault]) });
  await build(cloud, "group");
  cloud.durations.set({ factor: 1 });
  cloud.durations.milliseconds = () => 0;
  const before = clock.now().getTime();

  await clock.until(refusedBy(retried(cloud, () => cloud.put(...sound.vnet))));

  expect(clock.now().getTime() - before).toBe(milliseconds);
  expect(puts(cloud)).toBe(milliseconds > 0 ? 2 : 1);
});

it("does not ask again for an engine that went away", async () => {
  const clock = new PlayedClock();
  const { cloud } = newCloud({ clock, faults: busy(1) });
  await build(cloud, "group");

  await clock.until(
    refusedBy(retried(cloud, () => cloud.put(...sound.vnet), AbortSignal.abort())),
  );

  expect(puts(cloud)).toBe(1);
});
