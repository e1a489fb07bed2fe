import { ConnectionLost } from "../../../arm/azure-error";
import type { Stage } from "../../../arm/faults/breakpoints";
import { createResources, newArm } from "../../support/arm/fixture";
import { valid } from "../../support/arm/valid-resources";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** A Resource Manager in which the PUT of the network is paused, and the outcome of that PUT. */
async function held(stage: Stage, more: { drop?: boolean; nth?: number } = {}) {
  const { arm } = newArm();
  await createResources(arm, "group");
  arm.breakpoints.set({ method: "PUT", id: "virtualNetworks/vnet$", stage, ...more });
  const [id, body] = valid.vnet;
  const outcome = { is: "under way" };
  const request = arm.put(id, body).then(
    () => (outcome.is = "answered"),
    (error: unknown) => (outcome.is = error instanceof ConnectionLost ? "lost" : String(error)),
  );
  await (more.nth === undefined ? arm.breakpoints.reached() : request);
  return { arm, request, outcome, isThere: () => arm.peek(id) !== undefined };
}

it.each([
  ["arrived", "under way", false],
  ["accepted", "under way", true],
  ["answered", "answered", true],
] as const)("a request that is %s is %s, and its resource exists: %s", async (...expected) => {
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
] as const)("on release, a request that is %s with drop %s is %s", async (...expected) => {
  const [stage, drop, outcome, isThere] = expected;
  const { arm, request, outcome: got, isThere: exists } = await held(stage, { drop });

  arm.breakpoints.clear();
  await request;

  expect([got.is, exists()]).toEqual([outcome, isThere]);
});

it("pauses the nth matching request", async () => {
  const { arm, outcome } = await held("arrived", { nth: 2 });
  expect(outcome.is).toBe("answered");

  void arm.put(...valid.vnet);
  await arm.breakpoints.reached();
});

it("without method and id, pauses any request but GET", async () => {
  const { arm } = newArm();
  await createResources(arm, "group");
  arm.breakpoints.set({ stage: "arrived" });
  await arm.get(valid.group[0]);

  void arm.put(...valid.vnet).catch(() => undefined);
  await arm.breakpoints.reached();

  expect(arm.peek(valid.vnet[0])).toBeUndefined();
});

it("refuses an id that is not a regular expression", () => {
  const { arm } = newArm();

  const set = () => arm.breakpoints.set({ method: "PUT", id: "(", stage: "arrived" });

  expect(set).toThrow("a breakpoint has the id (, which is not a regular expression");
});
