import { text } from "node:stream/consumers";
import timers from "node:timers/promises";
import { TLSSocket } from "node:tls";

import { ResourceGroup } from "@pulumi/azure-native/resources";

import { ApiBalancer } from "../../../components/api-balancer";
import { getClusterHealth, isToBeAskedAgain } from "../../../components/cluster/cluster-health";
import { NoAnswer } from "../../../components/cluster/kubernetes-api";
import { serveKubernetesApi } from "../../support/kubernetes-api";
import { networkIds, Recorder } from "../../support/record";
import { subscriptionId, validSettings } from "../../support/sample";

// What is waited for takes a part of its time: an answer only where none comes, since a busy machine
// takes long to give one.
const timeout = AbortSignal.timeout.bind(AbortSignal);
const isInVain = () => isSilent !== undefined && asked.length === 0;
jest.spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout(isInVain() ? ms / 20 : ms));
const { setTimeout: pause } = timers;
jest.spyOn(timers, "setTimeout").mockImplementation((ms = 0) => pause(ms / 100) as never);

const now = Date.parse("2026-11-23T17:41:28Z");
const names = ["cp-1", "cp-2", "cp-3"];
const addressOf = (name: string) => `172.16.${name.slice(-1)}.4`;
const controlPlanes = names.map((name) => ({ name, address: addressOf(name) }));
const components = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString();
const ready = (status: string, message?: string) => ({
  conditions: [
    { type: "Other", status: "False" },
    { type: "Ready", status, message },
  ],
});

/** What the API has, as a test may change it. */
interface Objects {
  nodes: { metadata: { name: string; labels?: object }; status: object }[];
  pods: { metadata: { name: string }; status: object }[];
  leases: { metadata: { name: string }; spec: object }[];
  manager: { metadata: { name: string }; spec: object }[];
  /** Lines of etcd's own list. */
  members: string[];
  /** Lines of `etcdctl endpoint health` for members that do not serve. */
  unhealthy: string[];
  /** A control plane whose etcd answers nothing, or whose kubelet runs no pod. */
  broken?: { on: string; pod: object };
}

const lease = (name: string, seconds: number, leaseDurationSeconds = 40) => ({
  metadata: { name },
  spec: { renewTime: ago(seconds), leaseDurationSeconds },
});
const healthy = (): Objects => ({
  nodes: names.map((name) => ({ metadata: { name }, status: ready("True") })),
  pods: names.flatMap((name) =>
    components.map((component) => ({
      metadata: { name: `${component}-${name}` },
      status: ready("True"),
    })),
  ),
  leases: names.map((name) => lease(name, 60)),
  manager: [lease("kube-controller-manager", 35, 15)],
  members: names.map((name) => member(name)),
  unhealthy: [],
});

/** As `etcdctl member list` prints it. */
const member = (name: string, status = "started", isLearner = false) =>
  [
    ...[`${name}-id`, status, status === "started" ? name : "", `https://${addressOf(name)}:2380`],
    ...[status === "started" ? `https://${addressOf(name)}:2379` : "", isLearner],
  ].join(", ");

/** What the API says of a pod that runs etcdctl, and of the one whose image that has. */
function etcdctl(method = "", path: string): [number, string] | undefined {
  const [, pod = "", log] = /kube-system\/pods\/([^/]+)(\/log)?$/.exec(path) ?? [];
  if (pod.startsWith("etcd-")) {
    return [200, JSON.stringify({ spec: { containers: [{ name: "etcd", image: "etcd" }] } })];
  }
  if (!pod.startsWith("zoned-etcdctl-")) return undefined;
  if (log) return [200, objects.members.join("\n")];
  if (method !== "GET") return [200, "{}"];
  const { nodeName, initContainers = [] } = created.at(-1)!.spec;
  if (nodeName === objects.broken?.on) return [200, JSON.stringify(objects.broken.pod)];
  const isHealthAsked = initContainers.some(({ command }) => command.includes("health"));
  return [
    200,
    isHealthAsked && objects.unhealthy.length > 0
      ? failed([...objects.unhealthy, "Error: unhealthy cluster"].join("\n"))
      : JSON.stringify({ status: { phase: "Succeeded" } }),
  ];
}

const failed = (message: string): string =>
  JSON.stringify({
    status: {
      phase: "Failed",
      initContainerStatuses: [{ state: { terminated: { exitCode: 1, message } } }],
    },
  });

interface CreatedPod {
  readonly spec: {
    readonly nodeName: string;
    readonly initContainers?: readonly { readonly command: readonly string[] }[];
  };
}
const created: CreatedPod[] = [];

let kubeconfig: string;
let objects: Objects;
let answer: ((path: string, method?: string) => [number, string] | undefined) | undefined;
/** Whether a request gets no answer. */
let isSilent: (() => boolean) | undefined;
/** Whether its connection breaks instead. */
let isBroken: (() => boolean) | undefined;
const asked: { path: string; client?: string; port?: number }[] = [];
const written: unknown[] = [];

beforeAll(async () => {
  kubeconfig = await serveKubernetesApi(async (request, response) => {
    const { url = "", method, socket, headers } = request;
    asked.push({
      path: url,
      client: (socket as TLSSocket).getPeerCertificate().subject?.CN as string,
      port: socket.remotePort,
    });
    if (isSilent?.()) return;
    if (isBroken?.()) return void socket.destroy();
    const { pathname, searchParams } = new URL(url, "https://localhost");
    const pods: Record<string, unknown> = {
      "tier=control-plane": objects.pods,
      "app.kubernetes.io/name=zoned-etcdctl": [],
    };
    const listed: Record<string, unknown> = {
      "/api/v1/nodes": objects.nodes,
      "/api/v1/namespaces/kube-system/pods": pods[searchParams.get("labelSelector") ?? ""],
      "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases": objects.leases,
      "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases":
        searchParams.get("fieldSelector") === "metadata.name=kube-controller-manager"
          ? objects.manager
          : undefined,
    };
    const items = listed[pathname];
    const isWrite =
      method === "PATCH" &&
      headers["content-type"] === "application/apply-patch+yaml" &&
      url.endsWith("/kube-system/leases/zoned-health-check?fieldManager=zoned&force=true");
    if (isWrite) written.push(JSON.parse(await text(request)));
    if (method === "PATCH" && pathname.includes("/pods/zoned-etcdctl-")) {
      created.push(JSON.parse(await text(request)) as CreatedPod);
    }
    const [status, reply] = answer?.(pathname, method) ??
      etcdctl(method, pathname) ?? [
        pathname === "/readyz" || items !== undefined || isWrite ? 200 : 404,
        pathname === "/readyz" ? "ok" : JSON.stringify({ items }),
      ];
    response.writeHead(status, { date: new Date(now).toUTCString() }).end(reply);
  });
});
beforeEach(() => {
  objects = healthy();
  answer = undefined;
  isSilent = undefined;
  isBroken = undefined;
  asked.length = 0;
  written.length = 0;
  created.length = 0;
});

const paths = () => asked.map(({ path }) => path);
const ask = async (expected: Parameters<typeof getClusterHealth>[1] = controlPlanes) => {
  const { problems, unhealthy } = await getClusterHealth(kubeconfig, expected);
  return { problems, sick: Object.fromEntries(unhealthy) };
};

it("finds nothing wrong with a cluster that is well, by the API server's own clock", async () => {
  expect(await ask()).toEqual({ problems: [], sick: {} });
  expect(new Set(asked.map(({ client }) => client))).toEqual(new Set(["the-administrator"]));
  // Kubernetes reads microseconds here, and nothing else.
  expect(written).toEqual([
    expect.objectContaining({
      spec: { holderIdentity: "zoned", renewTime: expect.stringMatching(/T[\d:]{8}\.\d{6}Z$/) },
    }),
  ]);
});

it.each<[string, (all: Objects) => void, string]>([
  [
    "whose Node is not Ready",
    (all) => (all.nodes[1]!.status = ready("Unknown", "gone silent")),
    "its Node is not Ready: gone silent",
  ],
  ["without a Node", (all) => all.nodes.splice(1, 1), "it has no Node"],
  [
    "whose Node has no condition yet",
    (all) => (all.nodes[1]!.status = {}),
    "its Node is not Ready",
  ],
  [
    "whose kubelet is silent",
    (all) => (all.leases[1] = lease("cp-2", 61)),
    "its kubelet last renewed its lease 61 s ago",
  ],
  ["without a lease", (all) => all.leases.splice(1, 1), "its kubelet holds no lease"],
  ...components.flatMap((component, index): [string, (all: Objects) => void, string][] => [
    [
      `whose ${component} is not ready`,
      (all) => (all.pods[4 + index]!.status = ready("False", "it is ill")),
      `its ${component} is not ready: it is ill`,
    ],
    [`without ${component}`, (all) => all.pods.splice(4 + index, 1), `it runs no ${component}`],
  ]),
])("names a control plane %s, and no other", async (_, change, reason) => {
  change(objects);

  const { problems, sick } = await ask();

  expect(problems).toEqual([]);
  expect(Object.keys(sick)).toEqual(["cp-2"]);
  expect(sick["cp-2"]).toContainEqual(expect.stringContaining(reason));
});

it("goes by the duration of a lease where kubelets have a longer one", async () => {
  objects.leases[1] = lease("cp-2", 100, 90);
  objects.leases[2] = { metadata: { name: "cp-3" }, spec: { renewTime: ago(60) } };
  expect((await ask()).sick).toEqual({});

  objects.leases[2] = { metadata: { name: "cp-3" }, spec: { renewTime: ago(61) } };
  expect(Object.keys((await ask()).sick)).toEqual(["cp-3"]);
});

it("sees that no controller manager runs", async () => {
  objects.manager = [lease("kube-controller-manager", 36, 15)];

  expect((await ask()).problems).toEqual([
    expect.stringContaining("36 s ago: no controller manager"),
  ]);
});

it("sees that etcd takes no writes by trying one", async () => {
  answer = (_, method) =>
    method === "PATCH" ? [500, "etcdserver: mvcc: database space exceeded"] : undefined;

  expect(await getClusterHealth(kubeconfig, controlPlanes)).toMatchObject({
    problems: [
      expect.stringMatching(/answered 500 to PATCH .*zoned-health-check.*database space exceeded/),
    ],
    areEtcds: true,
    isSilent: false,
  });
});

it.each<[string, typeof answer, string]>([
  [
    "is not ready",
    (path) => (path === "/readyz" ? [500, "[-]etcd failed"] : undefined),
    "answered 500 to GET /readyz, expected 200: [-]etcd failed",
  ],
  [
    "names what is not ready behind all that is",
    (path) =>
      path === "/readyz"
        ? [
            500,
            `${"[+]poststarthook/x ok\n".repeat(40)}[-]etcd failed: reason withheld\n[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed`,
          ]
        : undefined,
    "expected 200: [-]etcd failed: reason withheld, [-]shutdown failed: reason withheld",
  ],
  [
    "lets nobody in",
    (path) => (path === "/api/v1/nodes" ? [403, "forbidden"] : undefined),
    "answered 403 to GET /api/v1/nodes",
  ],
])("says nothing of the members when the API %s", async (_, other, says) => {
  answer = other;

  expect(await ask()).toEqual({ problems: [expect.stringContaining(says)], sick: {} });
});

it("says until when the kubeconfig's certificate is valid where the API does not know it", async () => {
  answer = () => [401, "Unauthorized"];

  expect((await ask()).problems).toEqual([
    expect.stringMatching(
      /answered 401 .*is valid until \w+ +\d+ .*GMT; a pulumi up that touches no machine renews it/,
    ),
  ]);
});

it("asks once more by a new connection when one of several API servers is not ready", async () => {
  answer = () => (asked.length === 1 ? [500, "[-]etcd failed"] : undefined);
  objects.pods = objects.pods.filter(({ metadata }) => metadata.name !== "etcd-cp-3");

  expect(await ask()).toEqual({ problems: [], sick: { "cp-3": ["it runs no etcd"] } });
  expect(asked[1]!.path).toBe("/readyz");
  expect(asked[1]!.port).not.toBe(asked[0]!.port);
});

it.each([
  ["says nothing", () => (isSilent = () => asked.length === 1)],
  ["breaks the connection, as it ends", () => (isBroken = () => asked.length === 1)],
])("asks once more when one of several API servers %s", async (_, change) => {
  change();

  expect(await ask()).toEqual({ problems: [], sick: {} });
});

it("waits before it asks again until the balancer's probe has left that API server out", async () => {
  const recorder = await Recorder.start();
  const resourceGroup = new ResourceGroup("cluster", {});
  new ApiBalancer(
    "api",
    {
      resourceGroup,
      settings: validSettings,
      subscriptionId,
      network: networkIds,
      shown: new Map(),
    },
    { transformations: [recorder.watch] },
  );
  const { inputs } = await recorder.only("azure-native:network:LoadBalancer");
  const [{ intervalInSeconds, probeThreshold }] = inputs.probes;
  const clock = jest.spyOn(Date, "now").mockReturnValue(now);
  answer = () => (asked.length === 1 ? [500, "[-]etcd failed"] : undefined);
  jest.mocked(timers.setTimeout).mockClear();

  await ask();

  clock.mockRestore();
  const [[milliseconds]] = jest.mocked(timers.setTimeout).mock.calls as [[number]];
  expect(milliseconds).toBeGreaterThan(intervalInSeconds * probeThreshold * 1000);
});

it("asks the only API server once, and says how long it was silent", async () => {
  isSilent = () => true;
  const { problems } = await ask([{ name: "cp-1" }]);

  expect(problems).toEqual([expect.stringContaining("(silence for 20 s)")]);
  expect(asked).toHaveLength(1);
});

it.each([
  ["silence", true],
  ["ECONNRESET", true],
  ["ECONNREFUSED", true],
  ["UND_ERR_CONNECT_TIMEOUT", true],
  ["ENOTFOUND", false],
  ["CERT_HAS_EXPIRED", false],
])("of several API servers, by %s, asks again: %s", async (code, expected) => {
  const error = new NoAnswer("no answer", code);

  expect(await isToBeAskedAgain(error, 3, Date.now())).toBe(expected);
  expect(await isToBeAskedAgain(error, 1, Date.now())).toBe(false);
});

it("says what to look at when nobody answers", async () => {
  const nowhere = kubeconfig.replace(/localhost:\d+/, "localhost:1");
  const { problems, isSilent } = await getClusterHealth(nowhere, controlPlanes);

  expect(isSilent).toBe(true);
  expect(problems).toEqual([
    expect.stringMatching(
      /does not answer from here \(ECONNREFUSED\).*apiAccessCidrs.*HTTPS_PROXY/,
    ),
  ]);
});

describe("etcd's own list", () => {
  it.each([
    ["is a learner", member("cp-2", "started", true), "is a learner, which has no vote yet"],
    ["has not started", member("cp-2", "unstarted"), "etcd member cp-2-id has not started"],
  ])("shows that the member of a control plane %s", async (_, line, reason) => {
    objects.members[1] = line;

    expect(await ask()).toEqual({
      problems: [],
      sick: { "cp-2": [expect.stringContaining(reason)] },
    });
  });

  it("is followed by a question to each member, for the pod of one that has stopped may still be Ready", async () => {
    objects.unhealthy = [
      "https://172.16.2.4:2379 is unhealthy: failed to commit proposal: context deadline exceeded",
    ];

    expect(await ask()).toEqual({
      problems: [],
      sick: {
        "cp-2": ["its etcd is not healthy: failed to commit proposal: context deadline exceeded"],
      },
    });
    expect(created[0]!.spec.initContainers![0]!.command).toEqual(
      expect.arrayContaining(["endpoint", "health", "--cluster"]),
    );
  });

  it.each([
    ["etcd does not answer", failed("Error: context deadline exceeded"), /deadline exceeded/],
    ["kubelet runs no pod", JSON.stringify({ status: { phase: "Pending" } }), /is Pending after/],
  ])(
    "is asked of another control plane where the first one's %s, which is named",
    async (_, pod, says) => {
      const start = Date.now();
      const clock = jest.spyOn(Date, "now").mockImplementation(() => start + asked.length * 5_000);
      objects.broken = { on: "cp-1", pod: JSON.parse(pod) as object };

      const { problems, sick } = await ask();

      clock.mockRestore();
      expect(problems).toEqual([]);
      expect(sick).toEqual({ "cp-1": [expect.stringMatching(/^its etcd cannot be asked: /)] });
      expect(sick["cp-1"]![0]).toMatch(says);
    },
  );

  it.each([
    ["of a machine that is gone", member("cp-9"), "cp-9-id, named cp-9, belongs to no"],
    [
      "that has begun under another name where a control plane is",
      member("cp-9").replaceAll(addressOf("cp-9"), addressOf("cp-2")),
      "cp-9-id, named cp-9, belongs to no",
    ],
    [
      "that a failed join has left",
      member("cp-9", "unstarted", true),
      "cp-9-id at https://172.16.9.4:2380, which has not started, belongs to no",
    ],
  ])("shows a member %s, with the command that removes it", async (_, line, says) => {
    objects.members.push(line);

    const { problems, sick } = await ask();

    expect(sick).toEqual({});
    expect(problems).toEqual([
      expect.stringMatching(
        new RegExp(`${says}.*exec etcd-cp-1 -- etcdctl .* member remove cp-9-id$`),
      ),
    ]);
  });

  it("counts also those that are not well, and none where nobody can be asked", async () => {
    objects.nodes[2]!.status = ready("False", "it is ill");
    expect((await getClusterHealth(kubeconfig, controlPlanes)).members).toBe(3);

    for (const node of objects.nodes) node.status = ready("False", "it is ill");
    expect((await getClusterHealth(kubeconfig, controlPlanes)).members).toBeUndefined();
  });

  it("is asked where a control plane is well, and of nobody else", async () => {
    objects.nodes[0]!.status = ready("False", "it is ill");
    await ask();
    expect(paths()).toContain("/api/v1/namespaces/kube-system/pods/etcd-cp-2");

    asked.length = 0;
    for (const node of objects.nodes) node.status = ready("False", "it is ill");
    expect(Object.keys((await ask()).sick)).toEqual(names);
    expect(paths().join()).not.toContain("etcdctl");
  });

  it("may have the member of a machine that is gone and is made anew, which is not asked for anything", async () => {
    const [one, ...rest] = controlPlanes;

    expect(await ask([{ ...one!, isGone: true }, ...rest])).toEqual({ problems: [], sick: {} });
    expect(paths()).toContain("/api/v1/namespaces/kube-system/pods/etcd-cp-2");
  });
});

it("asks for every control plane that has a Node, though it is to leave", async () => {
  objects.nodes.push({
    metadata: { name: "cp-4", labels: { "node-role.kubernetes.io/control-plane": "" } },
    status: ready("False", "it is ill"),
  });
  objects.members.push(member("cp-4"));

  const { problems, sick } = await ask();

  expect(problems).toEqual([]);
  expect(sick["cp-4"]).toContain("its Node is not Ready: it is ill");
});
