import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { apiNameIn } from "../../../tools/local-azure/rehearsal/cluster-view";
import { LocalCloud, refused, unchanged, succeeded } from "../../../tools/lab/local-cloud";

interface Exported {
  deployment: {
    resources: {
      urn: string;
      type: string;
      deletedWith?: string;
      dependencies?: string[];
      propertyDependencies?: Record<string, string[] | null>;
    }[];
  };
}

let cloud: LocalCloud;
beforeAll(async () => {
  cloud = await LocalCloud.start("dev", { cni: "flannel", diskDriver: false });
  succeeded(await cloud.stack.up("--skip-preview"));
});
afterAll(() => cloud?.stop());

async function inCluster() {
  const { deployment } = (await cloud.stack.stackExport()) as Exported;
  return deployment.resources.filter(({ type }) => type.startsWith("kubernetes:"));
}

/** Ends the API and takes its port, so that it cannot come back; whoever calls it is hung up on. */
async function silenceApi(): Promise<Server> {
  const { kubeconfig } = (await cloud.stack.outputs()) as { kubeconfig: string };
  const { host, port } = (await cloud.stack.apiAddress(apiNameIn(kubeconfig)))!;
  const clusters = join(cloud.state, "machines", "clusters");
  const files = readdirSync(clusters, { recursive: true, encoding: "utf8" });
  const file = files.find((name) => /kube-apiserver[^/]*\.pid$/.test(name))!;
  const { pid } = JSON.parse(readFileSync(join(clusters, file), "utf8")) as { pid: number };
  process.kill(pid, "SIGKILL");
  for (;;) {
    const server = createServer((socket) => socket.destroy());
    const taken = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, host, () => resolve(true));
    });
    if (taken) return server;
    await sleep(20);
  }
}

/** Takes resources out of the state, as if they had been created and not recorded. */
async function forget(urns: readonly string[]): Promise<void> {
  const state = (await cloud.stack.stackExport()) as Exported;
  const isKept = (urn: string): boolean => !urns.includes(urn);
  const resources = state.deployment.resources
    .filter(({ urn }) => isKept(urn))
    .map(({ dependencies = [], propertyDependencies = {}, ...rest }) => ({
      ...rest,
      dependencies: dependencies.filter(isKept),
      propertyDependencies: Object.fromEntries(
        Object.entries(propertyDependencies).map(([key, all]) => [key, (all ?? []).filter(isKept)]),
      ),
    }));
  const file = join(cloud.state, "forgotten.json");
  writeFileSync(file, JSON.stringify({ ...state, deployment: { ...state.deployment, resources } }));
  const { code, stderr } = await cloud.stack.command("stack", "import", "--file", file);
  expect({ code, stderr }).toMatchObject({ code: 0 });
}

async function apiAnswers(): Promise<void> {
  for (;;) {
    try {
      await cloud.kubectl("get", "--raw", "/readyz");
      return;
    } catch {
      await sleep(500);
    }
  }
}

it("forgets nothing when it cannot reach the API, and changes nothing once that is back", async () => {
  const before = (await inCluster()).map(({ urn }) => urn).sort();
  const silence = await silenceApi();
  try {
    expect(refused(await cloud.stack.refresh())).toMatch(/cannot be reached|unreachable cluster/);
  } finally {
    silence.close();
  }
  expect((await inCluster()).map(({ urn }) => urn).sort()).toEqual(before);

  await apiAnswers();
  unchanged(await cloud.stack.up("--skip-preview"));
});

it("takes up what is in the cluster and not in the state", async () => {
  const before = (await inCluster()).map(({ urn }) => urn).sort();
  const lost = before.filter((urn) => /:(Secret|ConfigMap|DaemonSet|NodePatch)::/.test(urn));
  await forget(lost);

  succeeded(await cloud.stack.up("--skip-preview"));

  expect(lost.length).toBeGreaterThan(3);
  expect((await inCluster()).map(({ urn }) => urn).sort()).toEqual(before);
  unchanged(await cloud.stack.up("--skip-preview"));
});

it("is destroyed without an API, since everything in the cluster goes with something in Azure, and roles when Azure has forgotten their assignments", async () => {
  expect((await inCluster()).filter(({ deletedWith }) => !deletedWith)).toEqual([]);
  await cloud.takingTime(0.05);

  const silence = await silenceApi();
  try {
    succeeded(await cloud.stack.destroy());
  } finally {
    silence.close();
  }
  expect(await cloud.isEmpty()).toBe(true);
});
