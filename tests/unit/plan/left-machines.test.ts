import type { MachineState } from "../../../components/azure/state";
import { shownAs } from "../../../components/azure/shown";
import type { MachineChange } from "../../../components/plan/machine-changes";
import { unfinishedJoinProblems } from "../../../components/plan/left-machines";
import { serveKubernetesApi } from "../../support/kubernetes-api";
import { Recorder } from "../../support/record";
import { validSettings } from "../../support/sample";

const name = (word: string) => `zoned-test-${word}`;

interface Scene {
  /** What the update does, such as `remove cp-2`. */
  readonly change?: string;
  /** The step of cp-2, or nothing where it has none. */
  readonly step?: string | null;
  /** Members that etcd lists; one without a name has not started, and is at the address of cp-2. */
  readonly members?: readonly string[];
  /** The VM of which Pulumi's state has cp-2 as a member. */
  readonly membershipOf?: string;
  readonly areReady?: boolean;
}

let scene: Scene;
let kubeconfig: string;

const address = "172.16.2.4";
const lineOf = (word: string): string =>
  `1234, ${word === "" ? "unstarted, " : `started, ${name(word)}`}, https://${address}:2380, , false`;

/** An API whose kubelets run etcdctl at once. */
beforeAll(async () => {
  kubeconfig = await serveKubernetesApi((request, response) => {
    const { members = ["cp-1", "cp-2"], areReady = true } = scene;
    const { pathname } = new URL(request.url ?? "", "https://localhost");
    request.resume();
    const status = { conditions: [{ type: "Ready", status: areReady ? "True" : "Unknown" }] };
    const nodes = ["cp-2", "cp-1"].map((word) => ({ metadata: { name: name(word) }, status }));
    if (pathname.endsWith("/log")) response.end(members.map(lineOf).join("\n"));
    else if (pathname.endsWith("/nodes")) response.end(JSON.stringify({ items: nodes }));
    // One that joins may run none yet.
    else if (pathname.endsWith(`etcd-${name("cp-2")}`)) response.writeHead(404).end("{}");
    else {
      const pod = {
        spec: { containers: [{ name: "etcd", image: "etcd" }] },
        status: { phase: "Succeeded" },
      };
      response.end(JSON.stringify({ items: [], ...pod }));
    }
  });
});

async function problemsOf(of: Scene): Promise<string[]> {
  scene = of;
  const { change = "remove cp-2", step = "Succeeded", membershipOf } = of;
  const membership = (word: string, vmId: string) => ({
    type: "pulumi-nodejs:dynamic/zoned:Membership",
    outputs: { machine: name(word), vmId },
  });
  await Recorder.start({
    calls: {
      "pulumi:pulumi:readStackResourceOutputs": () => ({
        outputs: {
          1: { type: "azure-native:compute:VirtualMachine", outputs: { vmId: "second" } },
          2: membership("cp-1", "first"),
          ...(membershipOf === undefined ? {} : { 3: membership("cp-2", membershipOf) }),
        },
      }),
    },
  });
  const vm = (vmId: string, state: string | null): MachineState => ({
    size: "Standard_D2s_v5",
    vmId,
    ...(state !== null && { bootstrap: { state } }),
  });
  const [action, machine] = change.split(" ") as [MachineChange["action"], string];
  return unfinishedJoinProblems({
    settings: validSettings,
    changes: [{ action, machine: name(machine), reasons: [] }],
    azure: {
      machines: new Map([
        [name("cp-1"), vm("first", "Succeeded")],
        [name("cp-2"), vm("second", step)],
        [name("workers-1"), vm("third", "Succeeded")],
      ]),
      shown: new Map([
        [
          shownAs("azure-native:network:NetworkInterface", `${name("cp-2")}-nic`),
          { properties: { ipConfigurations: [{ properties: { privateIPAddress: address } }] } },
        ],
      ]) as never,
    },
    kubeconfig,
  });
}

it.each`
  what                                                       | scene
  ${"that Pulumi's state has as a member"}                   | ${{ membershipOf: "SECOND" }}
  ${"that etcd does not list, since its join has failed"}    | ${{ step: "Failed", members: ["cp-1"] }}
  ${"that has left etcd, and whose VM Azure did not delete"} | ${{ members: ["cp-1"] }}
  ${"that no update came to"}                                | ${{ step: null }}
  ${"that stays, and is configured otherwise"}               | ${{ change: "reconfigure cp-2" }}
  ${"beside which a worker leaves, which is no voter"}       | ${{ change: "remove workers-1" }}
`("lets a control plane go $what", async ({ scene: of }) => {
  expect(await problemsOf(of)).toEqual([]);
});

it.each`
  what                                                    | scene                                        | says
  ${"that etcd lists and Pulumi's state does not have"}   | ${{}}                                        | ${/VM of zoned-test-cp-2, which has joined, or .*back \(pulumi config set controlPlaneCount 3\), run/}
  ${"that joined in the place of one that the state has"} | ${{ membershipOf: "before" }}                | ${/has joined/}
  ${"whose join failed after it"}                         | ${{ step: "Failed" }}                        | ${/has joined/}
  ${"that is made anew before it was known"}              | ${{ change: "replace cp-2" }}                | ${/Take the change back, run pulumi up until it ends well/}
  ${"whose member has not started"}                       | ${{ step: "Failed", members: ["cp-1", ""] }} | ${/has joined/}
  ${"that may join while the update is on its way to it"} | ${{ step: "Creating", members: ["cp-1"] }}   | ${/may still be joining/}
  ${"of which nobody can be asked"}                       | ${{ areReady: false }}                       | ${/may have joined \(no other control plane is Ready\)/}
`("refuses to delete a control plane $what", async ({ scene: of, says }) => {
  expect(await problemsOf(of)).toEqual([expect.stringMatching(says)]);
});
