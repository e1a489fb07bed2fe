import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { changedAnything, Events, plannedSteps } from "../events";
import { testFolder } from "../../../tests/support/test-folder";

const folder = testFolder();
const path = join(folder, "log");
afterEach(() => rmSync(path, { force: true }));

const metadata = (name: string, op = "create", custom = true) => ({
  metadata: { op, urn: `urn:pulumi:a::b::c::${name}`, new: { custom } },
});
const write = (...events: object[]) =>
  appendFileSync(path, events.map((event) => `${JSON.stringify(event)}\n`).join(""));

it("knows what is under way: begun, not ended, and no component", () => {
  const events = new Events(path);
  write(
    { resourcePreEvent: metadata("component", "create", false) },
    { resourcePreEvent: metadata("one") },
    { resourcePreEvent: metadata("two", "update") },
    { resourcePreEvent: metadata("three") },
    { resourcePreEvent: metadata("four", "same") },
  );
  events.read();
  write({ resOutputsEvent: metadata("one") }, { resOpFailedEvent: metadata("three") });
  events.read();

  expect(events.underWay).toEqual(["update two"]);
});

it("waits for a line that is half written", () => {
  const events = new Events(path);
  const text = JSON.stringify({ summaryEvent: { resourceChanges: { create: 1 } } });

  appendFileSync(path, text.slice(0, 20));
  events.read();
  appendFileSync(path, `${text.slice(20)}\n`);
  events.read();

  expect(events.outcome.changes).toEqual({ create: 1 });
});

it("keeps errors and warnings, without their colours", () => {
  const events = new Events(path);
  write(
    { diagnosticEvent: { severity: "error", message: "<{%fg 9%}>no<{%reset%}>\n" } },
    { diagnosticEvent: { severity: "debug", message: "noise" } },
  );
  events.read();

  expect(events.outcome.diagnostics).toEqual(["no"]);
});

it.each(["shorter", "longer"])("begins anew when the update writes over its preview, %s", (how) => {
  const events = new Events(path);
  const noise = { diagnosticEvent: { severity: "warning", message: "a warning" } };
  const stage = (time: number, op: string, ...more: object[]) => {
    rmSync(path, { force: true });
    write(
      { sequence: 0, timestamp: time, preludeEvent: { config: {} } },
      { resourcePreEvent: metadata("one", op) },
      { summaryEvent: { resourceChanges: { [op]: 1 } } },
      ...more,
    );
    events.read();
  };
  stage(1, "create", ...(how === "shorter" ? [noise, noise] : []));
  stage(2, "update", ...(how === "longer" ? [noise, noise] : []));

  expect(events.outcome).toMatchObject({
    changes: { update: 1 },
    steps: ["update one"],
  });
  expect(events.outcome.diagnostics).toHaveLength(how === "longer" ? 2 : 0);
});

it("finds nothing while there is no log", () => {
  const events = new Events(path);
  events.read();

  expect(events.outcome).toEqual({ changes: {}, diagnostics: [], steps: [] });
});

it.each([
  [{ same: 159 }, false],
  [{ same: 158, read: 1 }, false],
  [{ same: 158, update: 1 }, true],
  [{ delete: 1 }, true],
  [{ same: 1, create: 0 }, false],
])("of %j something changed: %s", (changes, changed) => {
  expect(changedAnything({ changes, diagnostics: [], steps: [] })).toBe(changed);
});

const preview = `Previewing update (prod):

 -- azure-native:compute:VirtualMachine zoned-prod-cp-1-vm delete original 
 +- azure-native:compute:VirtualMachine zoned-prod-cp-1-vm replace [diff: ~storageProfile,tags]
 ++ azure-native:compute:VirtualMachine zoned-prod-cp-1-vm create replacement [diff: ~tags]
 ~  kubernetes:apps/v1:DaemonSetPatch roll-out-kube-proxy update [diff: ~metadata]
 +  zoned:index:Machine zoned-prod-cp-2 create
 +  pulumi:providers:kubernetes kubernetes-2 create 
\u001b[1m -  \u001b[0mkubernetes:core/v1:Secret token delete[retain] 
    pulumi:pulumi:Stack zoned-prod  
 ~  azure-native:network:NetworkInterface nic refresh
Resources:
    ~ 1 to update
`;

it("reads the steps that a preview announced, and none of the operation", () => {
  const update = "Updating (prod):\n\n +  kubernetes:core/v1:Secret other create\n";

  expect(plannedSteps(`${preview}\n\n${update}`)).toEqual([
    "delete-replaced zoned-prod-cp-1-vm",
    "replace zoned-prod-cp-1-vm",
    "create-replacement zoned-prod-cp-1-vm",
    "update roll-out-kube-proxy",
    "delete token",
    "refresh nic",
  ]);
});

it("knows of no plan where there was only a preview, or none", () => {
  expect(plannedSteps(preview)).toBeUndefined();
  expect(plannedSteps("Updating (prod):\n\n")).toBeUndefined();
});

it("takes a preview that announces nothing for one", () => {
  expect(plannedSteps("Previewing destroy (dev):\n\nDestroying (dev):\n")).toEqual([]);
});
