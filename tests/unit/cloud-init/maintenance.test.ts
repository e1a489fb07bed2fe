import { eventCordon, repairsWait } from "../../../components/cluster/turns";
import { bootstrapText, cloudInitText } from "../../../components/machine/payload";
import { eventTypes, ScheduledEvents } from "../../../tools/local-azure/arm/scheduled-events";
import { listedNode, staticPods, worker } from "../../support/bootstrapped-machine";
import { FakeMachine } from "../../support/fake-machine";
import { run } from "../../support/tools";

const name = "zoned-test-cp-2";
const id = "602D9444-D2CD-49C7-8624-8643E7171297";
const other = "zoned-test-cp-1";
const minutes = 60_000;
const begun = Date.now();

/** As Azure announces it, so many seconds before its time. */
const eventOf = (EventType: string, seconds = 900, change: object = {}) => ({
  EventId: id,
  EventStatus: "Scheduled",
  EventType,
  ResourceType: "VirtualMachine",
  Resources: [name],
  NotBefore: new Date(begun + seconds * 1000).toUTCString(),
  Description: "Host server is undergoing maintenance.",
  EventSource: "Platform",
  DurationInSeconds: -1,
  ...change,
});
const started = { EventStatus: "Started", NotBefore: "" };

/** A value in the ConfigMap of who is down. */
const until = (why: string, milliseconds: number) =>
  `${why} ${new Date(begun + milliseconds).toISOString().replace(/\.\d+/, "")}`;

const pod = (podName: string, change: object = {}) => ({
  metadata: { name: podName, namespace: "default", ...change },
  status: { phase: "Running" },
});

const members = {
  members: [1, 2, 3].map((n) => ({
    ID: `${n}000`,
    name: `zoned-test-cp-${n}`,
    clientURLs: [`https://172.16.${n}.4:2379`],
  })),
};

/** Azure and the API as files: a merge patch changes the object that it is for. */
const programs = {
  curl: `data=; url=; method=GET
  words=("$@"); for index in "\${!words[@]}"; do case \${words[index]} in
    --data) data=\${words[index + 1]}; [[ $method != GET ]] || method=POST ;;
    --request) method=\${words[index + 1]} ;;
    http*) url=\${words[index]} ;; esac; done
  merge() { jq --argjson patch "$data" 'def clean: if type == "object" then
      with_entries(select(.value != null) | .value |= clean) else . end; (. * $patch) | clean' <"$1" >"$1.new" && mv "$1.new" "$1"; }
  case $method:$url in
    GET:http://169.254.169.254/metadata/scheduledevents*)
      [[ $* == *"--header Metadata:true"* && $* == *"--noproxy *"* ]] || exit 22
      [[ ! -e $root/unanswered ]] || { cat "$root/unanswered" >&2; exit 22; }
      cat "$root/events" ;;
    POST:http://169.254.169.254/*) echo "$data" >>"$root/approved" ;;
    GET:*zoned-maintenance) cat "$root/turns"; printf '\\n200' ;;
    PATCH:*zoned-maintenance) if [[ -e $root/conflict ]]; then printf '\\n409'; else merge "$root/turns"; printf '\\n200'; fi ;;
    PATCH:*/api/v1/nodes/*) merge "$root/node" ;;
    GET:*/api/v1/nodes/*) cat "$root/node" ;;
    GET:*/api/v1/pods*) cat "$root/pods" ;;
    POST:*/eviction) echo "\${url##*/pods/}" >>"$root/evicted"
      if [[ -e $root/budget ]]; then printf '{"message": "Cannot evict pod", "details": {"causes": [{"message": "The disruption budget web needs 2"}]}}\\n429'
      else printf '{}\\n201'; fi ;;
    POST:*/events) jq --raw-output '"\\(.reason): \\(.message)"' <<<"$data" >>"$root/said" ;;
    GET:*/leases/*) TZ=UTC0 printf '{"spec": {"renewTime": "%(%FT%TZ)T"}}' -1 ;;
    *2379/health) echo '{"health":"true"}' ;;
    *maintenance/alarm) echo '{}' ;;
    *maintenance/status) cat "$root/status" ;;
    *transfer-leadership) [[ ! -e $root/refuses || $data != *1000* ]] || exit 22; echo "$data" >>"$root/given" ;;
    *member/list) echo '${JSON.stringify(members)}' ;;
  esac`,
  kubectl: `cat "$root/objects"`,
  systemctl: "",
};

interface World {
  readonly role?: "control-plane" | "worker";
  readonly events?: readonly object[];
  readonly turns?: Readonly<Record<string, string>>;
  readonly pods?: readonly object[];
  readonly node?: object;
  readonly peer?: string;
  /** That are there beside these. */
  readonly files?: readonly string[];
}

/** What a machine has done after a look at its events. */
interface Look {
  readonly approved: readonly string[];
  readonly isCordoned: boolean;
  readonly evicted: readonly string[];
  readonly hasTurn: boolean;
  readonly says: string;
}

class Machine extends FakeMachine {
  constructor(world: World = {}) {
    super(programs);
    const { role = "worker", node = {}, peer = "True" } = world;
    this.ship("bootstrap.sh", "/opt/zoned/bootstrap.sh");
    this.write(
      "/var/lib/zoned/variables",
      `machine=${name}\nrole=${role}\naddress=172.16.2.4\nawaits_ready=yes\napi_name=it\napi_port=6443\ndrain_minutes=15\n`,
    );
    for (const file of ["approved", "evicted", "said", "given", "run/it", ...(world.files ?? [])])
      this.write(`/${file}`, "");
    this.write("/node", JSON.stringify({ ...listedNode(name), spec: {}, ...node }));
    this.write("/status", JSON.stringify({ header: { member_id: "2000" }, leader: "2000" }));
    this.write(
      "/objects",
      JSON.stringify({ items: [listedNode(other, peer), ...staticPods(other)] }),
    );
    this.write("/etc/cni/net.d/10-it.conflist", "");
    this.write("/proc/uptime", "1000.00 900.00\n");
    this.write("/proc/sys/kernel/random/boot_id", "boot 1\n");
    this.set({ events: [], turns: {}, pods: [], ...world });
  }

  set({ events, turns, pods }: World): void {
    if (events) this.write("/events", JSON.stringify({ DocumentIncarnation: 1, Events: events }));
    if (turns) {
      this.write("/turns", JSON.stringify({ metadata: { resourceVersion: "7" }, data: turns }));
    }
    if (pods) this.write("/pods", JSON.stringify({ items: pods }));
  }

  /** Has what it waits for be so many minutes nearer. */
  pass(passed: number): void {
    const file = "/var/lib/zoned/maintenance";
    const until = (time: string) => `${Number(time) - passed * 60}`;
    this.write(file, this.read(file).replace(/\b\d+$/m, until));
  }

  bootstrap = (...words: string[]) => this.run("/opt/zoned/bootstrap.sh", words);
  look = () => this.bootstrap("look_at_events");
  duringStep(...words: string[]) {
    this.write(
      "/hold.sh",
      `exec 8>"$ZONED_ROOT/run/zoned-bootstrap.lock"; flock 8; bash "$ZONED_ROOT/opt/zoned/bootstrap.sh" "$@"`,
    );
    return this.run("/hold.sh", words);
  }
  lines = (file: string) => this.read(`/${file}`).split("\n").filter(Boolean);
  json = (file: string) => JSON.parse(this.read(`/${file}`));
  get approved(): string[] {
    return this.lines("approved").map((line) => JSON.parse(line).StartRequests[0].EventId);
  }
  get isCordoned(): boolean {
    return this.json("node").spec.unschedulable === true;
  }
  get state() {
    const { approved, isCordoned } = this;
    const hasTurn = name in this.json("turns").data;
    return { approved, isCordoned, evicted: this.lines("evicted"), hasTurn };
  }
}

const approvedFor = [id];

describe("a machine that Azure is to redeploy", () => {
  it("takes its turn, sends its pods away, approves once they are gone, and takes pods again when all is over", async () => {
    const web = pod("web-1");
    const machine = new Machine({ events: [eventOf("Redeploy")], pods: [web] });

    await machine.look();
    expect(machine.isCordoned).toBe(true);
    expect(machine.lines("evicted")).toEqual(["web-1/eviction"]);
    expect(machine.json("turns").data[name]).toMatch(/^Redeploy 20/);
    expect(machine.approved).toEqual([]);

    machine.set({ pods: [] });
    await machine.look();
    expect(machine.approved).toEqual(approvedFor);

    machine.set({ events: [eventOf("Redeploy", 0, started)] });
    await machine.look();
    expect(machine.isCordoned).toBe(true);

    machine.set({ events: [] });
    await machine.look();
    expect(machine.isCordoned).toBe(false);
    expect(machine.json("node").metadata.annotations).toEqual({});
    expect(machine.json("turns").data).toEqual({});
    expect(machine.lines("said").map((line) => line.split(":")[0])).toEqual([
      "RedeployScheduled",
      "RedeployAcknowledged",
      "MaintenanceEnded",
    ]);
    expect(machine.approved).toEqual(approvedFor);
  });

  it("says once why it cannot ask Azure, and again when that has changed, and goes on when it can", async () => {
    const machine = new Machine({ events: [eventOf("Redeploy")] });
    const saidWhile = async (answer: string) => {
      machine.write("/unanswered", answer);
      const { code, stdout, stderr } = await machine.look();
      return { code, said: `${stdout}${stderr}`.replace(/^\S+ /, "").trim() };
    };
    const [refused, late] = ["curl: (7) connection refused", "curl: (28) timed out"];
    const inVain = "Azure's scheduled events cannot be asked for: ";

    expect(await saidWhile(refused)).toEqual({ code: 0, said: `${inVain}${refused}` });
    expect(await saidWhile(refused)).toEqual({ code: 0, said: "" });
    expect(await saidWhile(late)).toEqual({ code: 0, said: `${inVain}${late}` });
    machine.removeFile("/unanswered");
    await machine.look();
    expect(machine.approved).toEqual(approvedFor);
    expect(await saidWhile(late)).toEqual({ code: 0, said: `${inVain}${late}` });
  });

  it.each([
    ["approves at once the restart by which it is repaired", name, 30, [approvedFor, false, []]],
    ["drains for one after its repair", name, -1, [[], true, ["web-1/eviction"]]],
    ["waits while another one is repaired", "zoned-test-workers-2", 30, [[], false, []]],
  ])("%s", async (_, repaired, left, expected) => {
    const turns = { [`repair.${repaired}`]: until("repair", left * minutes) };
    const machine = new Machine({ events: [eventOf("Reboot")], turns, pods: [pod("web-1")] });

    await machine.look();

    expect([machine.approved, machine.isCordoned, machine.lines("evicted")]).toEqual(expected);
  });

  it("approves at once the redeploy by which it is repaired when its restart has not helped", async () => {
    const turns = { [`repair.${name}`]: until("repair", 30 * minutes) };
    const machine = new Machine({ events: [eventOf("Reboot")], turns });
    machine.write("/proc/uptime", "-100.00 0\n");
    await machine.look();

    machine.set({ events: [eventOf("Redeploy", 600, { EventId: "another" })] });
    await machine.look();

    expect(machine.approved).toEqual([id, "another"]);
  });

  const evicted = ["web-1/eviction"];
  const withPod = { pods: [pod("web-1")] };
  const elsewhere = (why: string) => ({
    turns: { "zoned-test-workers-2": until(why, 30 * minutes) },
  });
  it.each<[string, World, Partial<Look>]>([
    [
      "knows both forms of a time that Azure's documentation has",
      {
        events: [
          eventOf("Redeploy", 900, {
            NotBefore: new Date(begun + 900_000).toISOString().replace(/\.\d+/, ""),
          }),
        ],
      },
      { approved: approvedFor, isCordoned: true, hasTurn: true },
    ],
    [
      "does not approve while a budget holds a pod",
      { ...withPod, files: ["budget"] },
      { isCordoned: true, evicted, hasTurn: true, says: "The disruption budget web needs 2" },
    ],
    [
      "has no turn when another machine has written at the same moment",
      { files: ["conflict"] },
      { says: "zoned-maintenance: 409" },
    ],
    [
      "waits for an update that has another machine down",
      elsewhere("update"),
      { says: "zoned-test-workers-2 is down for update" },
    ],
    [
      "is drained where somebody has uncordoned what an update had drained",
      { node: { metadata: { name, annotations: { "zoned/drained": "unschedulable" } } } },
      { approved: approvedFor, isCordoned: true, hasTurn: true },
    ],
    [
      "is no other machine's business",
      { events: [eventOf("Reboot", 900, { Resources: ["another"] })] },
      {},
    ],
    [
      "waits for nobody's turn where it is a Spot machine's end, half a minute ahead",
      { events: [eventOf("Preempt", 30)], ...elsewhere("Reboot"), ...withPod },
      { isCordoned: true, evicted, says: "zoned-test-workers-2 is down for Reboot" },
    ],
    [
      "as a control plane does not approve while another one is not well",
      { role: "control-plane", peer: "False" },
      { says: "node zoned-test-cp-1: Ready is False" },
    ],
  ])("%s", async (_, world, expected) => {
    const machine = new Machine({ events: [eventOf("Redeploy")], ...world });

    const { stdout } = await machine.look();

    const { says = "", ...state } = expected;
    const untouched = { approved: [], isCordoned: false, evicted: [], hasTurn: false };
    expect(machine.state).toEqual({ ...untouched, ...state });
    expect(stdout).toContain(says);
    if (Object.keys(expected).length === 0) expect(machine.lines("said")).toEqual([]);
  });

  it("is not looked at while the bootstrap step is at work", async () => {
    const machine = new Machine({ events: [eventOf("Redeploy")] });

    await machine.duringStep("look_at_events");

    expect(machine.isCordoned).toBe(false);
  });

  it("gives pods that a budget holds drainMinutes, takes pods again and lets others be down, and tries again an hour later", async () => {
    const machine = new Machine({
      events: [eventOf("Redeploy", 3 * 86_400)],
      pods: [pod("web-1")],
    });
    machine.write("/budget", "");
    const whatIs = async () => {
      await machine.look();
      return [machine.isCordoned, name in machine.json("turns").data];
    };

    expect(await whatIs()).toEqual([true, true]);
    machine.pass(14);
    expect(await whatIs()).toEqual([true, true]);
    machine.pass(2);
    expect(await whatIs()).toEqual([false, false]);
    expect(machine.lines("said").at(-1)).toMatch(
      /^RedeployDelayed: pods are still here after 15 minutes/,
    );
    machine.pass(59);
    expect(await whatIs()).toEqual([false, false]);
    machine.pass(2);
    expect(await whatIs()).toEqual([true, true]);

    machine.pass(16);
    expect(await whatIs()).toEqual([false, false]);
    // As long as a drain may take, and the three minutes out of turn.
    machine.set({ events: [eventOf("Redeploy", 17 * 60)] });
    expect(await whatIs()).toEqual([true, true]);
    machine.pass(16);
    expect(await whatIs()).toEqual([true, true]);
    expect(machine.approved).toEqual([]);
  });

  it.each([
    ["does not prepare for it days ahead", "Redeploy", 3 * 86_400, [false, []]],
    ["drains shortly before it, and approves nothing", "Redeploy", 17 * 60, [true, []]],
    ["approves a restart", "Reboot", 900, [true, approvedFor]],
  ])("and whose OS disk is then blank %s", async (_, type, seconds, expected) => {
    const machine = new Machine({ events: [eventOf(type, seconds)] });
    const payload = { ...worker, machine: name, isEphemeral: true };
    machine.ship("bootstrap.sh", "/script.sh", `${JSON.stringify(payload)}\n`);
    machine.write("/run/zoned/it", "");
    expect(await machine.run("/script.sh", ["read_payload"])).toMatchObject({ code: 0 });

    await machine.look();

    expect([machine.isCordoned, machine.approved]).toEqual(expected);
  });

  it("stays cordoned once it has approved, also where a pod comes after that", async () => {
    const machine = new Machine({ events: [eventOf("Redeploy", 3 * 86_400)] });
    await machine.look();
    machine.set({ pods: [pod("web-1")] });
    await machine.look();
    machine.pass(16);
    await machine.look();

    expect([machine.approved, machine.isCordoned]).toEqual([approvedFor, true]);
  });

  it.each([
    { does: "a worker leaves its turn to others", role: "worker" as const, hasTurn: false },
    { does: "a control plane keeps its turn", role: "control-plane" as const, hasTurn: true },
  ])("$does where Azure waits for days with what it has approved", async ({ role, hasTurn }) => {
    const machine = new Machine({ role, events: [eventOf("Redeploy", 3 * 86_400)] });
    await machine.look();
    machine.set({ turns: {} });

    await machine.look();

    expect([machine.approved[0], machine.isCordoned]).toEqual([approvedFor[0], true]);
    expect(name in machine.json("turns").data).toBe(hasTurn);
  });

  it("waits while another machine is down, and drains out of turn when its time comes, without a word to Azure", async () => {
    const turns = { "zoned-test-workers-2": until("Reboot", 30 * minutes) };
    const machine = new Machine({ events: [eventOf("Redeploy")], turns });

    const { stdout } = await machine.look();
    expect(stdout).toContain("zoned-test-workers-2 is down for Reboot");
    expect(machine.isCordoned).toBe(false);

    machine.set({ events: [eventOf("Redeploy", 100)] });
    await machine.look();
    expect(machine.isCordoned).toBe(true);
    expect(machine.approved).toEqual([]);

    machine.set({ turns: { "zoned-test-workers-2": until("Reboot", -minutes) } });
    await machine.look();
    expect(machine.approved).toEqual(approvedFor);
    expect(Object.keys(machine.json("turns").data)).toEqual([name]);
  });

  const drainedBy = (mark: string) => ({
    metadata: { name, annotations: { "zoned/drained": mark } },
    spec: { unschedulable: true },
  });
  it.each([
    ["that an update has drained", drainedBy("unschedulable")],
    ["whose Node an update has removed", { code: 404 }],
  ])("%s approves at once", async (_, node) => {
    const turns = { [name]: until("update", 30 * minutes) };
    const machine = new Machine({ events: [eventOf("Redeploy")], node, turns });

    await machine.look();

    expect(machine.approved).toEqual(approvedFor);
    expect(machine.json("turns").data).toEqual(turns);
  });

  it.each([
    ["it drains for Azure", "unschedulable excluded", 30, [pod("web-1")], [[], []]],
    ["it has drained for Azure", "unschedulable excluded", 30, [], [approvedFor, []]],
    ["it has drained to upgrade it", "unschedulable excluded upgrade", 30, [], [[], []]],
    [
      "left drained when it was killed",
      "unschedulable excluded upgrade",
      -1,
      [],
      [approvedFor, []],
    ],
    [
      "left half drained when it was killed",
      ...(["unschedulable", -1, [pod("web-1")], [[], ["web-1/eviction"]]] as const),
    ],
  ])(
    "beside an update that %s is approved when no pod is left and no step is to come",
    async (_, mark, left, pods, expected) => {
      const node = drainedBy(mark);
      const turns = { [name]: until("update", left * minutes) };
      const machine = new Machine({ events: [eventOf("Reboot", 170)], node, turns, pods });

      await machine.look();

      expect([machine.approved, machine.lines("evicted")]).toEqual(expected);
    },
  );

  it.each<[string, number, World, string]>([
    ["was killed, while another machine is down", -1, {}, "other is down for Reboot"],
    [
      "was killed, while a peer is not well",
      -1,
      { peer: "False" },
      `node ${other}: Ready is False`,
    ],
    [
      "still runs, while a peer is not well",
      30,
      { peer: "False" },
      `node ${other}: Ready is False`,
    ],
  ])(
    "does not approve for a control plane that an update has drained which %s",
    async (_, left, world, says) => {
      const machine = new Machine({
        role: "control-plane",
        events: [eventOf("Redeploy")],
        node: drainedBy("unschedulable excluded"),
        turns: {
          [name]: until("update", left * minutes),
          other: until("Reboot", world.peer ? -minutes : 30 * minutes),
        },
        ...world,
      });

      const { stdout } = await machine.look();

      expect(machine.approved).toEqual([]);
      expect(stdout).toContain(says);
    },
  );

  it.each(["unschedulable", "unschedulable excluded upgrade"])(
    "goes on at each look with what a killed update has left half drained (%s)",
    async (mark) => {
      const machine = new Machine({
        role: "control-plane",
        events: [eventOf("Reboot")],
        node: drainedBy(mark),
        turns: { [name]: until("update", -minutes) },
        pods: [pod("web-1")],
      });

      await machine.look();
      await machine.look();
      expect(machine.lines("evicted")).toEqual(["web-1/eviction", "web-1/eviction"]);

      machine.set({ pods: [] });
      await machine.look();
      expect(machine.approved).toEqual(approvedFor);

      machine.set({ turns: {} });
      await machine.look();
      expect(machine.json("turns").data[name]).toMatch(/^Reboot /);
    },
  );

  it("leaves a cordon that an update relies on, until its step has ended", async () => {
    const machine = new Machine({ events: [eventOf("Redeploy")] });
    await machine.look();
    const { metadata, ...node } = machine.json("node");
    metadata.annotations["zoned/drained"] = "excluded";
    machine.write("/node", JSON.stringify({ metadata, ...node }));
    machine.set({ events: [], turns: { [name]: until("update", 30 * minutes) } });

    await machine.look();
    expect(machine.isCordoned).toBe(true);

    machine.set({ events: [eventOf("Reboot", 900, { EventId: "another" })] });
    await machine.look();
    expect(machine.approved).toEqual([id, "another"]);

    machine.set({ events: [] });
    await machine.bootstrap("undo_drain");
    await machine.bootstrap("end_turn", "update");
    await machine.look();
    expect(machine.isCordoned).toBe(false);
  });

  it("keeps Azure waiting for volumes that are still attached, for two minutes at most", async () => {
    const status = { ...listedNode(name).status, volumesAttached: [{ name: "a disk" }] };
    const machine = new Machine({ events: [eventOf("Redeploy")], node: { status } });

    await machine.look();
    machine.pass(1);
    await machine.look();
    expect([machine.isCordoned, machine.approved]).toEqual([true, []]);

    machine.pass(1);
    await machine.look();
    expect(machine.approved).toEqual(approvedFor);
  });

  it.each([
    ["they are detached", eventOf("Redeploy"), []],
    ["its end comes", eventOf("Terminate", 300), [{ name: "a disk" }]],
  ])("keeps it waiting no longer for volumes when %s", async (_, event, volumesAttached) => {
    const status = { ...listedNode(name).status, volumesAttached };
    const machine = new Machine({ events: [event], node: { status } });

    await machine.look();

    expect(machine.approved).toEqual(approvedFor);
  });

  it("is drained before its end where the API has not answered for a moment", async () => {
    const turns = { other: until("Reboot", 30 * minutes) };
    const machine = new Machine({ events: [eventOf("Terminate")], pods: [pod("web-1")], turns });
    const node = machine.read("/node");
    const answers = async (answer: string) => {
      machine.write("/node", answer);
      await machine.look();
      machine.pass(1);
      expect(machine.approved).toEqual([]);
    };
    const nothing = '{"kind": "Status", "code": 500}';

    await answers(nothing);
    await answers(node);
    await answers(nothing);
    machine.set({ turns: {} });
    await answers(node);

    expect(machine.lines("evicted")).toEqual(["web-1/eviction"]);
  });

  it("leaves a cordon that somebody else has set", async () => {
    const machine = new Machine({
      events: [eventOf("Redeploy")],
      node: { spec: { unschedulable: true } },
    });
    await machine.look();
    expect(machine.approved).toEqual(approvedFor);

    machine.set({ events: [] });
    await machine.look();

    expect(machine.isCordoned).toBe(true);
  });

  it("takes no pods before its kubelet has spoken since it came back", async () => {
    const machine = new Machine({ events: [eventOf("Reboot")] });
    await machine.look();
    machine.set({ events: [] });
    machine.write("/proc/uptime", "-100.00 0\n");

    await machine.look();

    expect(machine.isCordoned).toBe(true);
  });
});

it("cordons by the annotation that the doctor knows", () => {
  expect(bootstrapText()).toContain(`cordoned_for_event=${eventCordon}\n`);
});

describe("of other events", () => {
  it("a freeze is only noted, once", async () => {
    const machine = new Machine({ events: [eventOf("Freeze")], pods: [pod("web-1")] });

    await machine.look();
    await machine.look();

    expect(machine.lines("said")).toEqual([expect.stringMatching(/^FreezeScheduled: /)]);
    expect([machine.isCordoned, machine.approved, machine.lines("evicted")]).toEqual([
      false,
      [],
      [],
    ]);
  });

  const ownEvent = (machine: Machine) => machine.look();
  const kured = (machine: Machine) => machine.bootstrap("reboot_in_turn");
  it.each([
    ["a freeze", "its own event", eventOf("Freeze", 3600), [eventOf("Reboot")], ownEvent],
    ["a freeze", "kured's reboot", eventOf("Freeze", 3600), [], kured],
    [
      "a redeploy of days later",
      "its own event",
      eventOf("Redeploy", 3 * 86_400),
      [eventOf("Reboot")],
      ownEvent,
    ],
    ["a redeploy of days later", "kured's reboot", eventOf("Redeploy", 3 * 86_400), [], kured],
  ])("%s holds nothing up that comes after %s", async (_, __, event, events, goDown) => {
    const later = { ...event, EventId: "another" };
    const machine = new Machine({ events: [later, ...events] });
    // Its disk is blank after a redeploy, for which it is not prepared before it must.
    machine.write(
      "/var/lib/zoned/variables",
      `${machine.read("/var/lib/zoned/variables")}is_ephemeral=yes\n`,
    );
    await machine.look();
    await goDown(machine);
    machine.set({ events: [later] });
    machine.write("/proc/sys/kernel/random/boot_id", "boot 2\n");

    await machine.look();
    expect([machine.isCordoned, machine.json("turns").data]).toEqual([false, {}]);
    await machine.look();

    const said = machine.lines("said").map((line) => line.split(":")[0]);
    expect(said.slice(-2)).toEqual(["MaintenanceEnded", `${event.EventType}Scheduled`]);
  });

  it.each([
    ["a Spot machine's end", eventOf("Preempt", 30)],
    ["its end, as an update deletes it", eventOf("Terminate", 300)],
    ["what has begun", eventOf("Reboot", 0, started)],
  ])(
    "of several it looks at the next one: %s, and not a redeploy of days later",
    async (_, next) => {
      const later = eventOf("Redeploy", 3 * 86_400, { EventId: "another" });
      const freeze = eventOf("Freeze", 0, { ...started, EventId: "a third" });
      const machine = new Machine({ events: [freeze, later, next] });

      await machine.look();

      expect(machine.lines("said")[0]).toMatch(`${next.EventType}${next.EventStatus}: `);
    },
  );

  it("where there is none, nothing is said", async () => {
    expect(await new Machine().look()).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});

describe("a control plane", () => {
  it("gives etcd's leadership to another member before it approves", async () => {
    const machine = new Machine({ role: "control-plane", events: [eventOf("Redeploy")] });

    await machine.look();

    expect(machine.lines("given")).toEqual(['{"targetID": "1000"}']);
    expect(machine.approved).toEqual(approvedFor);
  });

  it("gives it to a third one where the second does not take it", async () => {
    const machine = new Machine({ role: "control-plane", events: [eventOf("Redeploy")] });
    machine.write("/refuses", "");

    const { stdout } = await machine.look();

    expect(machine.lines("given")).toEqual(['{"targetID": "3000"}']);
    expect(stdout).not.toContain("zoned-test-cp-1 leads etcd");
  });

  it("that has left etcd, and whose API server is down for it, approves its end and nothing else", async () => {
    const machine = new Machine({ role: "control-plane", events: [eventOf("Redeploy")] });
    machine.write("/node", '{"kind": "Status", "code": 500}');

    await machine.look();
    expect(machine.approved).toEqual([]);

    machine.set({ events: [eventOf("Terminate")] });
    await machine.look();
    expect(machine.approved).toEqual([]);
    machine.pass(1);
    await machine.look();
    expect(machine.approved).toEqual(approvedFor);
  });

  it("that has left etcd approves its end at once where that is near", async () => {
    const machine = new Machine({ role: "control-plane", events: [eventOf("Terminate", 170)] });
    machine.write("/node", '{"kind": "Status", "code": 500}');

    await machine.look();

    expect(machine.approved).toEqual(approvedFor);
  });

  it("takes pods again when its own API server and etcd answer again, and not before", async () => {
    const machine = new Machine({ role: "control-plane", events: [eventOf("Reboot")] });
    machine.program(
      "curl",
      `[[ $* != *2381/health* || ! -e $root/sick ]] || exit 22\n${programs.curl}`,
    );
    await machine.look();
    machine.set({ events: [] });
    machine.write("/sick", "");

    await machine.look();
    expect(machine.isCordoned).toBe(true);

    machine.removeFile("/sick");
    await machine.look();
    expect(machine.isCordoned).toBe(false);
  });
});

describe("kured", () => {
  it("may begin with a machine while no other one is down, and changes nothing by asking", async () => {
    const machine = new Machine();

    expect(await machine.bootstrap("may_reboot")).toMatchObject({ code: 0 });
    expect(machine.json("turns").data).toEqual({});

    machine.set({ turns: { other: until("update", 30 * minutes) } });
    expect(await machine.bootstrap("may_reboot")).toMatchObject({ code: 1 });
  });

  it.each([
    [
      "that somebody has cordoned, for it would take that cordon away",
      (machine: Machine) => machine.write("/node", '{"spec": {"unschedulable": true}}'),
    ],
    ["whose Node cannot be asked for", (machine: Machine) => machine.removeFile("/node")],
  ])("does not begin with a machine %s", async (_, change) => {
    const machine = new Machine();
    change(machine);

    expect(await machine.bootstrap("may_reboot")).toMatchObject({ code: 1 });
  });

  it("reboots it in its turn, which ends when it is back", async () => {
    const machine = new Machine();

    await machine.bootstrap("reboot_in_turn");
    expect(machine.callsOf("systemctl")).toEqual(["reboot"]);
    await machine.look();
    expect(machine.json("turns").data[name]).toMatch(/^reboot 20/);

    machine.write("/proc/sys/kernel/random/boot_id", "boot 2\n");
    await machine.look();
    expect(machine.json("turns").data).toEqual({});
  });

  it("leaves a machine alone while its own bootstrap step is at work", async () => {
    const machine = new Machine({ turns: { [name]: until("update", 30 * minutes) } });

    expect(await machine.duringStep("may_reboot")).toMatchObject({ code: 1 });
    expect(await machine.duringStep("reboot_in_turn")).toMatchObject({ code: 1 });
    expect(machine.callsOf("systemctl")).toEqual([]);
    expect(machine.json("turns").data[name]).toMatch(/^update /);
  });

  const mayStepBegin = 'flock --nonblock "$root/run/zoned-bootstrap.lock" true';

  it("lets no bootstrap step begin once it reboots the machine, until that has ended", async () => {
    const machine = new Machine();
    for (const program of ["systemctl", "sleep"])
      machine.program(program, `! ${mayStepBegin} || touch "$root/begins"`);

    expect(await machine.bootstrap("reboot_in_turn")).toMatchObject({ code: 0 });

    expect([machine.callsOf("systemctl"), machine.callsOf("sleep")]).toEqual([["reboot"], ["300"]]);
    expect(machine.has("/begins")).toBe(false);
  });

  it("holds no event up by a reboot that has not come when its turn is over", async () => {
    const machine = new Machine();
    await machine.bootstrap("reboot_in_turn");
    machine.set({
      events: [eventOf("Reboot")],
      turns: { [name]: until("reboot", -minutes) },
    });

    await machine.look();
    await machine.look();

    expect(machine.approved).toEqual(approvedFor);
  });

  it("waits for its turn, in which a bootstrap step may begin, and does not reboot it where that does not come", async () => {
    const machine = new Machine({ turns: { other: until("Redeploy", 30 * minutes) } });
    machine.program("sleep", `${mayStepBegin} || touch "$root/waits"`);

    expect(await machine.bootstrap("reboot_in_turn")).toMatchObject({ code: 1 });

    expect(machine.has("/waits")).toBe(false);
    expect(machine.callsOf("systemctl")).toEqual([]);
  });
});

describe("an update", () => {
  it("shares its turn with other machines of itself, and waits for all else", async () => {
    const machine = new Machine({ turns: { other: until("update", 30 * minutes) } });
    expect(await machine.bootstrap("has_turn")).toMatchObject({ code: 0 });
    expect(Object.keys(machine.json("turns").data).sort()).toEqual(["other", name]);

    await machine.bootstrap("end_turn", "update");
    expect(Object.keys(machine.json("turns").data)).toEqual(["other"]);

    machine.set({ turns: { other: until("Reboot", 30 * minutes) } });
    expect(await machine.bootstrap("has_turn")).toMatchObject({ code: 1 });
  });

  it.each([
    ["does not wait for what repairs the very machine that it changes", name, 0],
    ["waits for what repairs another one", "other", 1],
  ])("%s", async (_, repaired, code) => {
    const turns = { [`repair.${repaired}`]: until("repair", 30 * minutes) };

    expect(await new Machine({ turns }).bootstrap("has_turn")).toMatchObject({ code });
  });

  it.each([
    ["that has had its turn", { [name]: until("update", 30 * minutes) }],
    ["that needed none, as one that has just joined", {}],
  ])("has repairs wait for a quarter of an hour after a step %s", async (_, turns) => {
    const machine = new Machine({ turns });

    await machine.bootstrap("end_turn", "update");

    const { annotations } = machine.json("turns").metadata;
    const left = Date.parse(annotations[repairsWait]) - Date.now();
    expect(left / minutes).toBeGreaterThan(14);
    expect(left / minutes).toBeLessThan(16);
  });

  it("does not take back what an event has noted", async () => {
    const turns = { [name]: until("Reboot", 30 * minutes) };
    const machine = new Machine({ turns });

    await machine.bootstrap("end_turn", "update");

    expect(machine.json("turns").data).toEqual(turns);
  });
});

describe("the turn of a machine", () => {
  it.each<[string, number, World, (machine: Machine) => Promise<unknown>]>([
    ["an event of Azure", 30, { events: [eventOf("Redeploy")] }, (machine) => machine.look()],
    ["kured's reboot", 30, {}, (machine) => machine.bootstrap("reboot_in_turn")],
    // Its pods may take drainMinutes to leave.
    ["an update", 45, {}, (machine) => machine.bootstrap("has_turn")],
  ])("lasts as long as it may be down, for %s %d minutes", async (_, lasts, world, goDown) => {
    const machine = new Machine(world);

    await goDown(machine);

    const [, end] = machine.json("turns").data[name].split(" ");
    expect(Math.abs(Date.parse(end) - Date.now() - lasts * minutes)).toBeLessThan(minutes);
  });

  it("is given back also where another machine writes at the same moment", async () => {
    const machine = new Machine({ turns: { [name]: until("update", 30 * minutes) } });
    machine.write("/conflict", "");
    machine.program("sleep", 'rm -f "$root/conflict"');

    await machine.bootstrap("end_turn", "update");

    expect(machine.json("turns").data).toEqual({});
  });

  it.each([eventOf("Terminate", 300), eventOf("Preempt", 30)])(
    "that goes for good is forgotten after five minutes, since nothing of it gives that back: $EventType",
    async (event) => {
      const machine = new Machine({ events: [event] });

      await machine.look();

      const [, end] = machine.json("turns").data[name].split(" ");
      expect(Date.parse(end) - Date.now()).toBeLessThan(6 * minutes);
    },
  );
});

describe("what a machine does by itself", () => {
  it("begins at every boot, and again whenever it has ended", () => {
    expect(cloudInitText("units/zoned-maintenance.service")).toMatch(
      / maintain\nRestart=always\nRestartSec=10\n\n\[Install\]\nWantedBy=multi-user\.target\n/,
    );
  });

  it("looks for sick workers once a minute, asks Azure for events of every type, and gives it the two minutes that its first answer may take", async () => {
    const machine = new FakeMachine({
      curl: "exit 7",
      // Of five seconds each, for two minutes.
      sleep: 'echo >>"$root/slept"; (($(wc -l <"$root/slept") < 24))',
      kubectl: "",
    });
    machine.ship("bootstrap.sh", "/opt/zoned/bootstrap.sh");
    machine.write("/var/lib/zoned/variables", "machine=it role=control-plane\n");
    machine.write("/opt/zoned/repair.env", "");
    machine.write("/run/it", "");

    await machine.run("/opt/zoned/bootstrap.sh", ["maintain"]);

    const asked = machine.callsOf("curl");
    const repairs = machine.callsOf("kubectl");
    expect(asked.filter((call) => call.includes("maintenance/status"))).toHaveLength(2);
    // Whose etcd does not answer does not lead it.
    expect(repairs).toEqual([]);
    const [, seconds, version] =
      /--max-time (\d+) .*scheduledevents\?api-version=(\S+)/.exec(asked.join("\n")) ?? [];
    expect(Number(seconds)).toBeGreaterThan(120);
    const events = new ScheduledEvents();
    for (const type of eventTypes)
      events.schedule({ machine: "it", type, perform: async () => undefined });
    const { body } = events.answer("it", { method: "GET", version: version ?? "", text: "" });
    const told = (body as { Events: { EventType: string }[] }).Events;
    expect(told.map(({ EventType }) => EventType)).toEqual(eventTypes);
  });

  it.each(["first-boot.sh", "generalize.sh", "etcd-snapshot.sh", "bootstrap/runner.sh"])(
    "says in UTC when it did it, whatever the machine's time zone is (%s)",
    async (script) => {
      const [say] = /^say\(\) .*$/m.exec(cloudInitText(script))!;

      const { stdout, stderr } = await run("bash", ["--norc", "-c", `${say}; say it`], {
        TZ: "JST-9",
      });

      const [time] = `${stdout}${stderr}`.split(" ");
      expect(Math.abs(Date.parse(time!) - Date.now())).toBeLessThan(60_000);
    },
  );

  it("has its turn to be down for as long as all restarts of a renewal may take", () => {
    const script = cloudInitText("renew-certificates.sh");
    const [, limit] = /ZONED_LIMIT:-(\d+)/.exec(script)!;
    const [, components] = /^components=\((.*)\)$/m.exec(script)!;
    const [, minutes] = /take_turn renewal (\d+)/.exec(script)!;

    expect(Number(minutes) * 60).toBeGreaterThan(components!.split(" ").length * Number(limit));
  });
});
