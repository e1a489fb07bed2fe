import { createServer, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import { testFolder } from "../../../../tests/support/test-folder";
import { ScheduledEvents } from "../../arm/scheduled-events";
import { answerMetadata, type MachineMetadata } from "../../machines/qemu/network/metadata";

const machine: MachineMetadata = {
  ...{ address: "172.16.1.4", subnet: { address: "172.16.1.0", prefix: "24" } },
  ...{ mac: "00:0d:3a:01:02:03", compute: { name: "one" }, identities: [], inboundRules: [] },
};

const folder = testFolder();
const socketPath = join(folder, "metadata");
let events: ScheduledEvents;
const server = createServer(
  (request, response) => void answerMetadata(request, response, machine, events),
);

beforeAll(() => new Promise<void>((resolve) => server.listen(socketPath, resolve)));
beforeEach(() => (events = new ScheduledEvents()));
afterAll(() => void server.close());

const version = "?api-version=2020-07-01";

const ask = (
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

it("tells a machine of its own events, from their announcement to their end", async () => {
  let end = () => undefined as void;
  const perform = () => new Promise<void>((resolve) => (end = resolve));
  expect((await ask()).body).toEqual({ DocumentIncarnation: 1, Events: [] });

  const { id, done } = events.schedule({ machine: "ONE", type: "Redeploy", perform });
  events.schedule({ machine: "two", type: "Reboot", perform: async () => undefined });
  const announced = (await ask()).body;
  expect(announced.Events).toEqual([
    expect.objectContaining({
      ...{ EventId: id, EventType: "Redeploy", EventStatus: "Scheduled", Resources: ["ONE"] },
      ...{ ResourceType: "VirtualMachine", EventSource: "Platform", DurationInSeconds: -1 },
    }),
  ]);
  const notice = Date.parse(announced.Events[0].NotBefore) - Date.now();
  expect(Math.round(notice / 60_000)).toBe(10);

  for (const approved of [200, 200]) {
    expect((await ask(version, approval(id))).status).toBe(approved);
  }
  expect((await ask()).body).toMatchObject({ Events: [{ EventStatus: "Started", NotBefore: "" }] });

  end();
  await done;
  expect((await ask()).body.Events).toEqual([]);
});

it.each([
  ["2017-08-01", ["Reboot"]],
  ["2017-11-01", ["Reboot", "Preempt"]],
  ["2019-01-01", ["Reboot", "Preempt", "Terminate"]],
])("tells by version %s of %j", async (since, told) => {
  const perform = async () => undefined;
  for (const type of ["Reboot", "Preempt", "Terminate"] as const)
    events.schedule({ machine: "one", type, perform });

  const { body } = await ask(`?api-version=${since}`);
  expect(body.Events.map(({ EventType }: any) => EventType)).toEqual(told);
});

it("does what has not been approved when its time has come", async () => {
  const perform = jest.fn(async () => undefined);

  await events.schedule({ machine: "one", type: "Preempt", notice: 0, perform }).done;

  expect(perform).toHaveBeenCalledTimes(1);
});

it.each([
  ["no header", version, undefined, {}],
  ["no version", "", undefined, undefined],
  ["a version that there is not", "?api-version=2021-02-01", undefined, undefined],
  ["an approval that is none", version, "{}", undefined],
  ["an approval of nothing", version, approval(), undefined],
  ["an approval of another event", version, approval("it"), undefined],
] as const)("refuses a request with %s", async (_, query, body, headers) => {
  expect(await ask(query, body, headers)).toMatchObject({ status: 400 });
});

it("knows which machines ask for their events", async () => {
  expect(events.isWatched("one")).toBe(false);

  await ask();

  expect(events.isWatched("one")).toBe(true);
  expect(events.isWatched("one", Date.now() + 25 * 3_600_000)).toBe(false);
});
