import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import { ScheduledEvents } from "../../arm/scheduled-events";
import { answerMetadata, type MachineMetadata } from "../../machines/qemu/network/metadata";

const metadataOf = (name: string): MachineMetadata => ({
  ...{ address: "172.16.1.4", subnet: { address: "172.16.1.0", prefix: "24" } },
  ...{ mac: "00:0d:3a:01:02:03", compute: { name }, identities: [], inboundRules: [] },
});

const folder = mkdtempSync(join(tmpdir(), "zoned-events-"));
const servers: Server[] = [];
const listening = (server: Server, path: string): Promise<string> =>
  new Promise((resolve) => {
    servers.push(server.listen(path, () => resolve(path)));
  });
let events: ScheduledEvents;
let direct: string;
let passed: string;

beforeAll(async () => {
  // Resource Manager, which is told in the request who asks; and a network, which passes on to it.
  direct = await listening(
    createServer((request, response) => {
      const [, words = ""] = (request.headers["proxy-authorization"] ?? "").split(" ");
      const [name = ""] = Buffer.from(words, "base64").toString().split(":");
      void answerMetadata(request, response, metadataOf(name || "one"), events);
    }),
    join(folder, "direct"),
  );
  passed = await listening(
    createServer(
      (request, response) => void answerMetadata(request, response, metadataOf("one"), direct),
    ),
    join(folder, "passed"),
  );
});
beforeEach(() => (events = new ScheduledEvents()));
afterAll(() => {
  servers.forEach((server) => server.close());
  rmSync(folder, { recursive: true });
});

const version = "?api-version=2020-07-01";

const ask = (
  socketPath: string,
  query = version,
  body?: string,
  headers: Record<string, string> = { metadata: "true" },
): Promise<{ status?: number; body: any }> =>
  new Promise((resolve, reject) => {
    const path = `/metadata/scheduledevents${query}`;
    const sent = request(
      { socketPath, path, headers, method: body === undefined ? "GET" : "POST" },
      (answer) => {
        text(answer).then(
          (said) => resolve({ status: answer.statusCode, body: JSON.parse(said) }),
          reject,
        );
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
const approval = (...ids: string[]) =>
  JSON.stringify({ StartRequests: ids.map((EventId) => ({ EventId })) });

it.each(["directly", "by way of its network"])(
  "tells a machine %s of an event from its announcement to its end",
  async (way) => {
    const at = way === "directly" ? direct : passed;
    let end = () => undefined as void;
    const perform = () => new Promise<void>((resolve) => (end = resolve));
    expect((await ask(at)).body).toEqual({ DocumentIncarnation: 1, Events: [] });

    const { id, done } = events.schedule({ machine: "one", type: "Redeploy", perform });
    const announced = (await ask(at)).body;
    expect(announced).toMatchObject({
      DocumentIncarnation: 2,
      Events: [
        {
          ...{ EventId: id, EventType: "Redeploy", EventStatus: "Scheduled", Resources: ["one"] },
          ...{ ResourceType: "VirtualMachine", EventSource: "Platform", DurationInSeconds: -1 },
        },
      ],
    });
    const notice = Date.parse(announced.Events[0].NotBefore) - Date.now();
    expect(Math.round(notice / 60_000)).toBe(10);

    expect(await ask(at, version, approval(id))).toEqual({ status: 200, body: {} });
    expect(await ask(at, version, approval(id))).toEqual({ status: 200, body: {} });
    expect((await ask(at)).body).toMatchObject({
      DocumentIncarnation: 3,
      Events: [{ EventStatus: "Started", NotBefore: "" }],
    });

    end();
    await done;
    expect((await ask(at)).body).toEqual({ DocumentIncarnation: 4, Events: [] });
  },
);

it("does what has not been approved when its time has come", async () => {
  const perform = jest.fn(async () => undefined);

  await events.schedule({ machine: "one", type: "Preempt", notice: 0, perform }).done;

  expect(perform).toHaveBeenCalledTimes(1);
});

it("tells a machine of its own events alone, whatever the case of its name", async () => {
  const perform = async () => undefined;
  events.schedule({ machine: "ONE", type: "Reboot", perform });
  events.schedule({ machine: "two", type: "Reboot", perform });

  expect((await ask(direct)).body.Events).toHaveLength(1);
});

it.each([
  ["no header", version, undefined, {}],
  ["no version", "", undefined, undefined],
  ["a version that there is not", "?api-version=2021-02-01", undefined, undefined],
  ["an approval that is none", version, "{}", undefined],
  ["an approval of nothing", version, approval(), undefined],
  ["an approval of another event", version, approval("it"), undefined],
] as const)("refuses a request with %s", async (_, query, body, headers) => {
  expect(await ask(direct, query, body, headers)).toMatchObject({ status: 400 });
});

it("knows which machines ask for their events", async () => {
  expect(events.isWatched("one")).toBe(false);

  await ask(direct);

  expect(events.isWatched("one")).toBe(true);
  expect(events.isWatched("one", Date.now() + 25 * 3_600_000)).toBe(false);
});
