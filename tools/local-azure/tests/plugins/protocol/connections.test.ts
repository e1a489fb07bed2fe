import { Plugin, ResourceProvider } from "../../../plugins/protocol/protocol";
import { Connections } from "../../../plugins/protocol/serve";

const plugin: Plugin = { version: "1.0.0", connect: () => ({}) as ResourceProvider };

it("keeps two providers of one program apart by their connections", () => {
  const connections = new Connections(plugin);
  const one = connections.attached("127.0.0.1:1");
  const two = connections.attached("127.0.0.1:2");

  expect(connections.of("127.0.0.1:1").provider).toBe(one.provider);
  expect(connections.of("127.0.0.1:2").provider).toBe(two.provider);
});

it("interrupts only the provider whose run was interrupted", () => {
  const connections = new Connections(plugin);
  const one = connections.attached("127.0.0.1:1");
  const two = connections.attached("127.0.0.1:2");

  connections.of("127.0.0.1:1").cancel();

  expect([one.signal.aborted, two.signal.aborted]).toEqual([true, false]);
});

it("starts afresh on a connection that has the port of one that is gone", () => {
  const connections = new Connections(plugin);
  const before = connections.attached("127.0.0.1:1");
  before.cancel();

  const after = connections.attached("127.0.0.1:1");

  expect(after.signal.aborted).toBe(false);
  expect(connections.of("127.0.0.1:1")).toBe(after);
});

it("takes an engine that had to dial again for the one that came last", () => {
  const connections = new Connections(plugin);
  const last = connections.attached("127.0.0.1:1");

  expect(connections.of("127.0.0.1:9")).toBe(last);
});
