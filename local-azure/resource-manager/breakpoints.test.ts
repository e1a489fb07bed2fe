import { ConnectionLost } from "./azure-error";
import type { Stage } from "./breakpoints";
import { build, newCloud } from "./fixture";
import { sound } from "./sample";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** A cloud in which the network's PUT is held, and what has become of that PUT. */
async function held(stage: Stage, more: { drop?: boolean; nth?: number } = {}) {
  const { cloud } = newCloud();
  await build(cloud, "group");
  cloud.breakpoints.set({ method: "PUT", id: "virtualNetworks/vnet$", stage, ...more });
  const [id, body] = sound.vnet;
  const outcome = { is: "under way" };
  const request = cloud.put(id, body).then(
    () => (outcome.is = "answered"),
    (error: unknown) => (outcome.is = error instanceof ConnectionLost ? "lost" : String(error)),
  );
  await (more.nth === undefined ? cloud.breakpoints.reached() : request);
  return { cloud, request, outcome, isThere: () => cloud.peek(id) !== undefined };
}

it.each([
  ["arrived", "under way", false],
  ["accepted", "under way", true],
  ["answered", "answered", true],
] as const)("a request that has %s is %s, and what it asks for is there: %s", async (...expected) => {
  const [stage, outcome, isThere] = expected;

  const { outcome: got, isThere: exists } = await held(stage);
  await nextTurn();

  expect([got.is, exists()]).toEqual([outcome, isThere]);
});

it.each([
  ["arrived", undefined, "answered", true],
  ["accepted", undefined, "answered", true],
  ["arrived", true, "lost", false],
  ["accepted", true, "lost", true],
] as const)("when it is let go, one that has %s with drop %s is %s", async (...expected) => {
  const [stage, drop, outcome, isThere] = expected;
  const { cloud, request, outcome: got, isThere: exists } = await held(stage, { drop });

  cloud.breakpoints.clear();
  await request;

  expect([got.is, exists()]).toEqual([outcome, isThere]);
});

it("holds the request that was meant, not those before it", async () => {
  const { cloud, outcome } = await held("arrived", { nth: 2 });
  expect(outcome.is).toBe("answered");

  void cloud.put(...sound.vnet);
  await cloud.breakpoints.reached();
});

it("holds whatever changes something when it is told no more than that", async () => {
  const { cloud } = newCloud();
  await build(cloud, "group");
  cloud.breakpoints.set({ stage: "arrived" });
  await cloud.get(sound.group[0]);

  void cloud.put(...sound.vnet).catch(() => undefined);
  await cloud.breakpoints.reached();

  expect(cloud.peek(sound.vnet[0])).toBeUndefined();
});

it("says which pattern is no regular expression", () => {
  const { cloud } = newCloud();

  const set = () => cloud.breakpoints.set({ method: "PUT", id: "(", stage: "arrived" });

  expect(set).toThrow("a breakpoint has the id (, which is no regular expression");
});
