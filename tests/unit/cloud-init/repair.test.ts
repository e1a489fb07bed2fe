import { machineRights } from "../../../components/azure/lacking-rights";
import { eventCordon } from "../../../components/cluster/turns";
import { serveRest } from "../../../tools/local-azure/arm/rest/rest";
import {
  createResources,
  newArm,
  tokenOf,
} from "../../../tools/local-azure/tests/support/arm/fixture";
import {
  group,
  roleDefinition,
  subscription,
  valid,
} from "../../../tools/local-azure/tests/support/arm/valid-resources";
import { FakeMachine } from "../../support/fake-machine";
import { freePort, serve } from "../../support/listen";
import { installed } from "../../support/tools";

const name = "zoned-test-cp-1";
const sick = "zoned-test-workers-1";
const idOf = (machine: string) =>
  `/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/${machine}`;
const ago = (minutes: number) =>
  new Date(Date.now() - minutes * 60_000).toISOString().replace(/\.\d+/, "");
const controlPlane = { "node-role.kubernetes.io/control-plane": "" };

interface Change {
  readonly labels?: object;
  readonly annotations?: object;
  readonly creationTimestamp?: string;
  readonly spec?: object;
}

/** A Node that has been Ready, or not, for so many minutes. */
const node = (of: string, status: string, minutes = 60, change: Change = {}) => ({
  metadata: {
    name: of,
    labels: change.labels ?? {},
    annotations: change.annotations ?? {},
    creationTimestamp: change.creationTimestamp ?? ago(91),
  },
  spec: { providerID: `azure://${idOf(of)}`, ...change.spec },
  status: { conditions: [{ type: "Ready", status, lastTransitionTime: ago(minutes) }] },
});
/** One of a zone of a region. */
const inZone = (zone: number) => ({ "topology.kubernetes.io/zone": `westeurope-${zone}` });
const itself = node(name, "True", 60, { labels: { ...controlPlane, ...inZone(1) } });
const other = node("zoned-test-workers-2", "True", 60, { labels: inZone(2) });
const neighbour = node("zoned-test-batch-3", "True", 60, { labels: inZone(3) });
const silent = (minutes = 11, change: Change = {}) =>
  node(sick, "Unknown", minutes, { labels: inZone(3), ...change });
/** The same, which was restarted 31 minutes ago. */
const restarted = (change: Change = {}) =>
  silent(60, {
    ...change,
    annotations: { "zoned/repaired": `restart ${ago(31)}`, ...change.annotations },
  });

const programs = {
  curl: `case $* in
    */events*) for word; do [[ $word != {* ]] || jq --raw-output '"\\(.reason) \\(.involvedObject.name)"' <<<"$word" >>"$root/said"; done ;;
    *oauth2/token*) [[ $* == *"--header Metadata:true"* && $* == *client_id=it* ]] || exit 22
      [[ -e $root/metadata ]] || { cat "$root/token"; exit; }
      exec ${installed("curl", "curl")} "\${@/169.254.169.254/$(<"$root/metadata")}" ;;
    *http://127.0.0.1:*/virtualMachines/*) exec ${installed("curl", "curl")} "$@" ;;
    *management.azure.com*) [[ ! -e $root/refuses ]] || exit 22
      header=$(cat "\${@: -2:1}" 2>/dev/null || true); for word; do [[ $word != @* ]] || header=$(cat "\${word#@}"); done
      echo "$header \${@: -1}" >>"$root/asked" ;;
    *maintenance/status*) cat "$root/status" ;;
    *"--request PATCH"*zoned-maintenance*) printf '\\n200' ;;
    *zoned-maintenance*) cat "$root/turns"; printf '\\n200' ;;
  esac`,
  kubectl: `case $* in *"get nodes"*) cat "$root/nodes" ;; *annotate*) echo "\${*: -2}" >>"$root/annotated" ;; esac`,
};

interface World {
  readonly nodes: readonly object[];
  readonly turns?: Readonly<Record<string, string>>;
  /** Until when an update that has run has repairs wait. */
  readonly wait?: string;
  readonly leads?: boolean;
  readonly isOff?: boolean;
  /** Names of machines with ephemeral OS disks, but for their numbers. */
  readonly ephemeral?: readonly string[];
  /** Where the metadata service is, which else is a stand-in that has a token. */
  readonly metadata?: string;
  /** The local Azure, and a token for it. */
  readonly azure?: { readonly endpoint: string; readonly token: string };
}

const fake = { endpoint: "https://management.azure.com", token: "secret" };

async function repair(
  { nodes, turns = {}, wait, leads = true, isOff = false, ephemeral = [], ...world }: World,
  refuses = false,
) {
  const { azure = fake, metadata } = world;
  const machine = new FakeMachine(programs);
  if (metadata !== undefined) machine.write("/metadata", new URL(metadata).host);
  machine.ship("bootstrap.sh", "/opt/zoned/bootstrap.sh");
  machine.write(
    "/var/lib/zoned/variables",
    `machine=${name}\nrole=control-plane\napi_name=it\napi_port=6443\n`,
  );
  if (!isOff) {
    machine.write(
      "/opt/zoned/repair.env",
      `CLIENT_ID='it'\nRESOURCE_MANAGER='${azure.endpoint}'\nEPHEMERAL_POOLS='${ephemeral.join(" ")}'\n`,
    );
  }
  machine.write(
    "/status",
    JSON.stringify({ header: { member_id: "1" }, leader: leads ? "1" : "2" }),
  );
  const annotations = wait === undefined ? {} : { "zoned/repairs-wait-until": wait };
  machine.write("/turns", JSON.stringify({ metadata: { annotations }, data: turns }));
  machine.write("/token", JSON.stringify({ access_token: azure.token }));
  machine.write("/nodes", JSON.stringify({ items: nodes }));
  for (const file of ["asked", "annotated", "said"]) machine.write(`/${file}`, "");
  if (refuses) machine.write("/refuses", "");
  await machine.run("/opt/zoned/bootstrap.sh", ["repair"]);
  const lines = (file: string) => machine.read(`/${file}`).split("\n").filter(Boolean);
  return { machine, asked: lines("asked"), annotated: lines("annotated"), said: lines("said") };
}

const isOff = { spec: { taints: [{ key: "node.cloudprovider.kubernetes.io/shutdown" }] } };
const isCordoned = { spec: { unschedulable: true } };

const until = new Date(Date.now() + 600_000).toISOString().replace(/\.\d+/, "");
const asksTo = (step: string) => [
  `Authorization: Bearer secret https://management.azure.com${idOf(sick)}/${step}?api-version=2024-11-01`,
];

it("restarts a worker that has not been Ready for ten minutes, and says so on its Node", async () => {
  const {
    machine,
    asked: ofAzure,
    annotated,
    said,
  } = await repair({
    nodes: [itself, other, silent()],
  });

  expect(ofAzure).toEqual(asksTo("restart"));
  expect(annotated).toEqual([expect.stringMatching(`^${sick} zoned/repaired=restart 20`)]);
  expect(said).toEqual([`RepairRestart ${sick}`]);
  const asked = machine.callsOf("curl").join();
  expect(asked).not.toContain("secret");
  // No other machine goes down meanwhile.
  expect(asked).toMatch(`"repair.${sick}":"repair 20`);
});

it.each([
  ["is switched off, or taken back by Azure", isOff],
  ["is cordoned", isCordoned],
])("restarts it also while another one %s", async (_, change) => {
  const away = node("zoned-test-batch-1", "Unknown", 6000, change);

  const { asked } = await repair({ nodes: [itself, away, silent()] });

  expect(asked).toEqual(asksTo("restart"));
});

it.each([
  ["redeploys it half an hour later", `restart ${ago(31)}`, asksTo("redeploy")],
  ["gives the restart its time", `restart ${ago(20)}`, []],
  ["does no more when that has not helped either", `redeploy ${ago(300)}`, []],
  ["restarts it half an hour after Azure has refused to", `never ${ago(31)}`, asksTo("restart")],
  ["gives Azure time where it has refused", `never ${ago(29)}`, []],
])("%s", async (_, repaired, expected) => {
  const annotations = { "zoned/repaired": repaired };

  const { asked } = await repair({
    nodes: [itself, other, neighbour, silent(60, { annotations })],
  });

  expect(asked).toEqual(expected);
});

const eventCordoned = { [eventCordon]: "602D9444-D2CD-49C7-8624-8643E7171297" };

it("redeploys it also where it was cordoned for an event of Azure since its restart", async () => {
  const cordoned = restarted({ ...isCordoned, annotations: eventCordoned });
  const nodes = [itself, other, neighbour, cordoned];

  expect((await repair({ nodes })).asked).toEqual(asksTo("redeploy"));
});

it("restarts, and does not redeploy, the only machine of a zone, which may be out", async () => {
  const off = node("zoned-test-batch-3", "Unknown", 60, { ...isOff, labels: inZone(3) });

  const first = await repair({ nodes: [itself, other, off, silent()] });
  const second = await repair({ nodes: [itself, other, off, restarted()] });

  expect([first.asked, second.asked]).toEqual([asksTo("restart"), []]);
});

it.each([
  ["restarts, and does not redeploy,", "zoned-test-workers", []],
  ["redeploys one beside", "zoned-test-workers-2", asksTo("redeploy")],
])("%s a worker whose OS disk would be lost with its host", async (_, pool, redeploys) => {
  const ephemeral = ["zoned-test-fast", pool];

  const first = await repair({ nodes: [itself, silent()], ephemeral });
  const second = await repair({ nodes: [itself, neighbour, restarted()], ephemeral });

  expect([first.asked, second.asked]).toEqual([asksTo("restart"), redeploys]);
});

it("forgets what it has done to one that is Ready again, and gives its turn back", async () => {
  const annotations = { "zoned/repaired": `restart ${ago(5)}` };

  const { machine, annotated, said } = await repair({
    nodes: [itself, node(sick, "True", 1, { annotations })],
    turns: { [`repair.${sick}`]: `repair ${until}` },
  });

  expect(annotated).toEqual([`${sick} zoned/repaired-`]);
  expect(said).toEqual([`Repaired ${sick}`]);
  expect(machine.callsOf("curl").join()).toContain(`"repair.${sick}":null`);
});

it.each<[string, World]>([
  ["for less than ten minutes", { nodes: [itself, silent(9)] }],
  [
    "beside another one, as in a zone that is out",
    { nodes: [itself, silent(), node("b", "False")] },
  ],
  [
    "and whose own bootstrap step may still run",
    { nodes: [itself, silent(11, { creationTimestamp: ago(89) })] },
  ],
  ["and is a control plane", { nodes: [itself, silent(11, { labels: controlPlane })] }],
  ["and is cordoned", { nodes: [itself, silent(11, isCordoned)] }],
  [
    "and was cordoned before, for an event of Azure",
    { nodes: [itself, silent(11, { ...isCordoned, annotations: eventCordoned })] },
  ],
  [
    "and was cordoned by somebody since its restart",
    { nodes: [itself, neighbour, restarted(isCordoned)] },
  ],
  ["and is switched off", { nodes: [itself, silent(11, isOff)] }],
  ["while an update runs", { nodes: [itself, silent()], turns: { b: `update ${until}` } }],
  ["between two steps of an update", { nodes: [itself, silent()], wait: until }],
  ["at an event of Azure", { nodes: [itself, silent()], turns: { [sick]: `Reboot ${until}` } }],
  ["by a member that does not lead etcd", { nodes: [itself, silent()], leads: false }],
  ["where the settings do not say so", { nodes: [itself, silent()], isOff: true }],
])("touches no machine that is not Ready %s", async (_, world) => {
  expect(await repair(world)).toMatchObject({ asked: [], annotated: [], said: [] });
});

it.each([
  ["keeps what it needs for that while the settings say so", "repair", true],
  ["has nothing of it left when they do not any more", "", false],
])("a control plane %s", async (_, tasks, expected) => {
  const machine = new FakeMachine({ systemctl: "" });
  machine.ship("bootstrap.sh", "/opt/zoned/bootstrap.sh");
  machine.write("/opt/zoned/repair.env", "");
  machine.write("/run/zoned/variables", `tasks=(${tasks})\n`);
  machine.write("/var/lib/zoned/it", "");

  expect(await machine.run("/opt/zoned/bootstrap.sh", ["watch_events"])).toMatchObject({ code: 0 });

  expect(machine.has("/opt/zoned/repair.env")).toBe(expected);
});

it("repairs again a while after an update", async () => {
  const { asked } = await repair({ nodes: [itself, silent()], wait: ago(1) });

  expect(asked).toEqual(asksTo("restart"));
});

it.each([
  ["restart", "never"],
  ["redeploy", "restart"],
])(
  "says on the Node that Azure refuses to %s it, counts it for nothing, and gives its turn back",
  async (step, last) => {
    const annotations = { "zoned/repaired": `${last} ${ago(31)}` };
    const nodes = [itself, neighbour, silent(60, { annotations })];
    const turns = { [`repair.${sick}`]: `repair ${until}` };

    const { machine, annotated, said } = await repair({ nodes, turns }, true);

    const reason = `Repair${step[0]!.toUpperCase()}${step.slice(1)}`;
    expect(said).toEqual([`${reason} ${sick}`, `RepairFailed ${sick}`]);
    expect(annotated.at(-1)).toMatch(`${sick} zoned/repaired=${last} 20`);
    expect(machine.callsOf("curl").join()).toContain(`"repair.${sick}":null`);
  },
);

it.each([404, 410, 429, 500])(
  "asks the metadata service again for a token where it answers %d",
  async (status) => {
    let asked = 0;
    const metadata = await serve((_, response) => {
      response.writeHead(asked++ === 0 ? status : 200);
      response.end(JSON.stringify({ access_token: fake.token }));
    });

    const repaired = await repair({ nodes: [itself, silent()], metadata });

    expect(repaired.asked).toEqual(asksTo("restart"));
  },
);

it.each([
  ["gives its turn back where Azure could not be asked", undefined, true],
  ["gives its turn back where Azure refuses", "403 Forbidden", true],
  ["keeps its turn where Azure was asked and has not answered, and may restart it", "", false],
  ["keeps its turn where Azure answers with a 5xx, and may restart it", "502 Bad Gateway", false],
])("%s", async (_, status, expected) => {
  const endpoint =
    status === undefined
      ? `http://127.0.0.1:${await freePort()}`
      : await serve(({ socket }) => {
          if (status === "") socket.destroy();
          else socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
        });
  const azure = { ...fake, endpoint };
  const turns = { [`repair.${sick}`]: `repair ${until}` };

  const { machine, said } = await repair({ nodes: [itself, silent()], turns, azure });

  expect(said).toContain(`RepairFailed ${sick}`);
  expect(machine.callsOf("curl").join().includes(`"repair.${sick}":null`)).toBe(expected);
});

describe("the cluster's identity", () => {
  /** What the local Azure does with its machine cp-1, and what is said of it on its Node. */
  async function asIdentity(repaired: string, autoRepair: boolean, isOff = false) {
    const { arm } = newArm();
    await createResources(arm);
    const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/cluster`;
    await arm.put(identity, { location: "westeurope" });
    const { principalId } = arm.peek(identity) as Record<string, string>;
    const role = roleDefinition("00000000-0000-4000-8000-000000000001");
    await arm.put(role, {
      roleName: "the cluster's",
      permissions: [{ actions: machineRights({ autoRepair }) }],
      assignableScopes: [subscription],
    });
    await arm.put(
      `${group}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-000000000002`,
      { principalId, roleDefinitionId: role },
    );
    if (isOff) await arm.power(valid.machine[0], "deallocate", { perform: () => undefined });
    const done: string[] = [];
    const power = async ({ name: of }: { readonly name: string }, action: string) =>
      void done.push(`${action} ${of}`);
    const server = await serveRest(arm, 0, { power });
    const azure = {
      endpoint: `http://127.0.0.1:${server.port}`,
      token: tokenOf(arm, identity),
    };
    const spec = { providerID: `azure://${valid.machine[0]}` };
    const annotations = { "zoned/repaired": repaired };
    try {
      const nodes = [itself, neighbour, silent(60, { annotations, spec })];
      const { said } = await repair({ nodes, azure });
      return { done, said };
    } finally {
      await server.close();
    }
  }

  it.each([
    ["restart", `never ${ago(60)}`],
    ["redeploy", `restart ${ago(60)}`],
  ])("may have Azure %s a machine where the settings say so, and not else", async (step, last) => {
    const [allowed, refused] = [await asIdentity(last, true), await asIdentity(last, false)];

    expect([allowed.done, refused.done]).toEqual([[`${step} cp-1`], []]);
    expect(allowed.said).not.toContain(`RepairFailed ${sick}`);
    expect(refused.said).toContain(`RepairFailed ${sick}`);
  });

  it("leaves a machine off that is deallocated, and says so", async () => {
    const { done, said } = await asIdentity(`never ${ago(60)}`, true, true);

    expect(done).toEqual([]);
    expect(said).toContain(`RepairFailed ${sick}`);
  });
});
