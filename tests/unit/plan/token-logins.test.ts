import { shownAs } from "../../../components/azure/shown";
import type { PreviousOutputs } from "../../../components/plan/machine-changes";
import { getLoginProblem } from "../../../components/plan/token-logins";
import { serveKubernetesApi } from "../../support/kubernetes-api";
import { validSettings } from "../../support/sample";

const now = "2026-11-25T02:00:00.000Z";
const ofPool =
  "/subscriptions/s/resourceGroups/RG/providers/Microsoft.ManagedIdentity/userAssignedIdentities";
const own = `${ofPool.replace("RG", "zoned-test")}/zoned-test`;
const ours = `${ofPool}/ours`;

const done = { observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2 };

interface Scene {
  /** Ids of the identities of cp-2; cp-1 has none any more. */
  readonly carried?: readonly string[];
  readonly previous?: Partial<PreviousOutputs>;
  readonly settings?: Partial<typeof validSettings>;
  /** Of the disk driver's controller. */
  readonly status?: Partial<typeof done>;
  readonly env?: string;
  readonly answer?: number;
}

let scene: Scene;
let asked: string[];
let kubeconfig: string;
let close: () => void;
beforeAll(async () => {
  ({ kubeconfig, close } = await serveKubernetesApi(({ url = "" }, response) => {
    asked.push(url);
    const isDriver = url.endsWith("/csi-azuredisk-controller");
    const { env = "AZURE_FEDERATED_TOKEN_FILE", status, answer = 200 } = scene;
    response.writeHead(answer).end(
      JSON.stringify({
        metadata: { generation: 2 },
        spec: {
          replicas: 2,
          template: {
            spec: { containers: [{}, { env: [{ name: env, value: "" }] }] },
          },
        },
        status: { ...done, ...(isDriver && status) },
      }),
    );
  }));
});
afterAll(() => close());

function problemOf(of: Scene): Promise<string | undefined> {
  scene = of;
  asked = [];
  const { carried = [own], previous, settings } = of;
  const names = ["zoned-test-cp-1", "zoned-test-cp-2"];
  const ids = [[], carried];
  return getLoginProblem({
    settings: {
      ...{ ...validSettings, cloudProvider: true, diskDriver: true, machineIdentity: false },
      ...settings,
    },
    previous: { isFederated: true, ...previous } as PreviousOutputs,
    azure: {
      machines: new Map(names.map((name) => [name, { size: "s" }])),
      shown: new Map(
        names.map((name, index) => [
          shownAs("azure-native:compute:VirtualMachine", name),
          {
            name,
            identity: {
              userAssignedIdentities: Object.fromEntries(ids[index]!.map((id) => [id, {}])),
            },
          },
        ]),
      ),
    },
    kubeconfig,
    now,
  });
}

it.each<[string, Scene, number]>([
  ["once both Deployments are rolled out and log in by tokens", {}, 2],
  ["once that of the one that there is is", { settings: { diskDriver: false } }, 1],
  ["where no control plane carries it, and asks nobody", { carried: [`${own}-kubelet`] }, 0],
  ["before pods log in by tokens, and asks nobody", { previous: { isFederated: undefined } }, 0],
  ["where it is wanted, and asks nobody", { settings: { machineIdentity: true } }, 0],
])("has no reason to keep the identity %s", async (_, of, requests) => {
  expect(await problemOf(of)).toBeUndefined();
  expect(asked).toHaveLength(requests);
});

const behind = "Deployment kube-system/csi-azuredisk-controller is not rolled out";

it.each<[string, Scene, string]>([
  ["while a pod of before is left", { status: { replicas: 3 } }, behind],
  ["while a new one is not ready", { status: { availableReplicas: 1 } }, behind],
  [
    "while nobody has looked at the Deployment of now",
    { status: { observedGeneration: 1 } },
    behind,
  ],
  ["where pods log in as their machines", { env: "OTHER" }, "cloud-controller-manager is not"],
  ["where the API does not know", { answer: 500 }, "answered 500"],
  [
    "where nobody is to be asked",
    { settings: { skipHealthCheckUntil: "20261125T030000Z" } },
    "nobody",
  ],
  [
    "also where it is one that exists already",
    { carried: [ours], settings: { identityId: ours.toUpperCase() }, answer: 500 },
    "answered 500",
  ],
  [
    "also where it is one that exists already, and this update names another",
    { carried: [ours], previous: { identityId: ours }, answer: 500 },
    "answered 500",
  ],
])("keeps the identity %s, and says so", async (_, of, says) => {
  expect(await problemOf(of)).toContain(says);
});
