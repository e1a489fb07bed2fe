import { shownAs } from "../../../components/azure/shown";
import {
  getLoginProblem,
  planFederation,
  planTokenIssuers,
} from "../../../components/plan/federation";
import type { PreviousOutputs } from "../../../components/plan/machine-changes";
import { tokenIssuerOf } from "../../../components/token-issuer";
import { serveKubernetesObjects } from "../../support/kubernetes-api";
import { validSettings } from "../../support/sample";

describe("federation", () => {
  const [own, entras] = ["https://kubernetes.default.svc.cluster.local", "https://entra.example"];

  it.each([
    ["a new cluster begins with it", false, [entras, own], undefined, [true, false]],
    [
      "while a living one admits the issuer alone, all is as before",
      false,
      [own, entras],
      {},
      [false, true],
    ],
    ["with tokens of the issuer, pods log in by them", false, [entras, own], {}, [true, true]],
    [
      "the update after that takes the identity off",
      ...([false, [entras, own], { isFederated: true }, [true, false]] as const),
    ],
    [
      "one that goes back carries the identity at once",
      ...([true, [entras, own], { isFederated: true }, [false, true]] as const),
    ],
  ] as const)("%s", (_, machineIdentity, issuers, previous, expected) => {
    const isKnownToEntra = issuers[0] === entras;
    const { isUsed, isOnMachines } = planFederation(
      { machineIdentity },
      isKnownToEntra,
      previous,
      undefined,
    );

    expect([isUsed, isOnMachines]).toEqual(expected);
  });

  it("says that another update has to follow, and only then", () => {
    const settings = { machineIdentity: false };
    const said = (previous: Parameters<typeof planFederation>[2], isKnownToEntra = true) =>
      planFederation(settings, isKnownToEntra, previous, undefined).message;

    expect(said({})).toMatch(/Run pulumi up again/);
    // That the issuer is not known yet is said by itself.
    for (const message of [said(undefined), said({}, false), said({ isFederated: true })])
      expect(message).toBeUndefined();
  });

  it("leaves the identity where it is while the pods are not known to log in without it, and says why", () => {
    const settings = { machineIdentity: false };
    const before = { isFederated: true } as const;
    const { message, ...federation } = planFederation(settings, true, before, "nobody answers");

    expect(federation).toEqual({ isUsed: true, isOnMachines: true });
    expect(message).toMatch(
      /leaves the cluster's identity .*: nobody answers\. Run pulumi up again/,
    );
  });
});

describe("token issuers", () => {
  const own = "https://kubernetes.default.svc.cluster.local";
  const settings = {
    clusterName: "zoned-dev",
    resourceManagerEndpoint: "https://management.azure.com",
    machineIdentity: true,
    workloadIdentities: [{ namespace: "shop", serviceAccount: "app", identityId: "", roles: [] }],
    kubeadm: validSettings.kubeadm,
  };
  const without = { ...settings, workloadIdentities: [] };
  const [theirs, others] = ["https://theirs.example", "https://others.example"];
  const operators = (issuer: string) => ({
    ...without,
    kubeadm: { ...without.kubeadm, apiServerExtraArgs: { "service-account-issuer": issuer } },
  });
  const subscriptionId = "5ca1ab1e-0000-4000-8000-000000000001";
  const entras = tokenIssuerOf(settings, subscriptionId);

  it.each([
    ["a new cluster begins with it, and admits kubeadm's", settings, undefined, [entras, own]],
    ["a new cluster without it has what kubeadm gives it", without, undefined, undefined],
    ["a living one admits it first", settings, {}, [own, entras]],
    ["then it gives tokens of it", settings, { tokenIssuers: [own, entras] }, [entras, own]],
    [
      "so does one whose machines carry no identity",
      ...([{ ...without, machineIdentity: false }, undefined, [entras, own]] as const),
    ],
    ["it stays", settings, { tokenIssuers: [entras, own] }, [entras, own]],
    [
      "one that stops goes back, and admits it",
      without,
      { tokenIssuers: [entras, own] },
      [own, entras],
    ],
    ["one that stops half-way goes back", without, { tokenIssuers: [own, entras] }, [own, entras]],
    ["one that never had it stays so", without, {}, undefined],
    ["a new one begins with an operator's own", operators(theirs), undefined, [theirs, own]],
    ["an operator's own may be kubeadm's", operators(own), undefined, undefined],
    ["a living one admits an operator's own first", operators(theirs), {}, [own, theirs]],
  ] as const)("%s", (_, wanted, previous, issuers) => {
    const planned = planTokenIssuers(wanted, subscriptionId, previous as never);

    expect(planned.tokenIssuers).toEqual(issuers);
  });

  it.each([
    ["kubeadm's", "an operator's", without, operators(theirs), theirs],
    ["an operator's", "kubeadm's", operators(theirs), without, own],
    ["an operator's", "another one", operators(theirs), operators(others), others],
    ["an operator's", "this program's", operators(theirs), settings, entras],
    ["this program's", "an operator's", settings, operators(theirs), theirs],
  ])(
    "gives no token that an API server of the update before refuses, and refuses none: from %s to %s",
    (_, __, from, to, wanted) => {
      const start = planTokenIssuers(from, subscriptionId, undefined);
      const updates = [start, start, start];
      for (const index of [1, 2])
        updates[index] = planTokenIssuers(to, subscriptionId, updates[index - 1]);
      const [before, first, second] = updates.map(({ tokenIssuers = [own] }) => tokenIssuers);

      for (const [one, next] of [
        [before, first],
        [first, second],
      ]) {
        expect(one).toContain(next![0]);
        expect(next).toEqual(expect.arrayContaining([...one!]));
      }
      expect(second![0]).toBe(wanted);
    },
  );

  it("says that another update has to follow the first one", () => {
    expect(planTokenIssuers(settings, subscriptionId, {}).message).toMatch(/Run pulumi up again/);
    const next = { tokenIssuers: [own, entras] as const };
    expect(planTokenIssuers(settings, subscriptionId, next).message).toMatch(
      /of before stay valid/,
    );
  });
});

describe("token logins", () => {
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
  beforeAll(async () => {
    kubeconfig = await serveKubernetesObjects(({ url }) => {
      asked.push(url);
      const isDriver = url.endsWith("/csi-azuredisk-controller");
      const { env = "AZURE_FEDERATED_TOKEN_FILE", status, answer = 200 } = scene;
      const containers = [{}, { env: [{ name: env, value: "" }] }];
      return [
        answer,
        {
          metadata: { generation: 2 },
          spec: { replicas: 2, template: { spec: { containers } } },
          status: { ...done, ...(isDriver && status) },
        },
      ];
    });
  });

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
});
