import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { isDeepStrictEqual } from "node:util";

import type { VirtualMachine } from "../../../machines/machines";
import { Api, type Body, kubeconfigOf, mergePatch } from "../../../machines/simulated/api";
import type { Binaries } from "../../../machines/simulated/control-plane/control-plane";
import { SimulatedMachines } from "../../../machines/simulated/simulated";
import {
  cloudControllerManager,
  cniDaemonSet,
  nodeManager,
  tokenOf,
} from "../../support/simulated/workloads";
import { checkout, loadTypeScript } from "../../../../shared/checkout";
import { identityOf, isAlive } from "../../../../shared/pids";
import {
  type Fixture,
  type Knobs,
  newFixture,
  scriptOf,
  vmOf,
} from "../../support/simulated/fixture";
import { testFolder } from "../../../../../tests/support/test-folder";
import { describeUnless } from "../../../../../tests/support/unless";
import { until } from "../../../../../tests/support/until";

/** A folder with etcd, kubeadm, kwok and the control plane's components. */
const folder = process.env.ZONED_BINARIES;
const names = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubeadm",
  "kwok",
] as const;
const binaries = Object.fromEntries(
  names.map((name) => [name, path.join(folder ?? "", name)]),
) as Binaries;

const apiName = "demo.westeurope.cloudapp.azure.com";
const minutes = 60_000;
const limits = { api: 2 * minutes, ready: 2 * minutes, peers: 2 * minutes };

const missing = folder ? undefined : "ZONED_BINARIES names no folder";

describeUnless(missing)("simulated machines on real components", () => {
  const stateDir = testFolder();
  const logged: string[] = [];
  const log = (message: string) => void logged.push(message);
  const machines = new SimulatedMachines({ stateDir, binaries, log, limits });
  let fixture: Fixture;
  let initialControlPlane: string;

  const controlPlane = (index: number) => vmOf(`demo-cp-${index}`, `${index}`, `172.16.${index}.4`);
  const worker = (index: number) =>
    vmOf(`demo-workers-${index}`, `${index + 1}`, `172.16.${index + 1}.16`);

  const cp = [controlPlane(1), controlPlane(2), controlPlane(3)] as const;
  const workers = [worker(1), worker(2)] as const;

  const admin = () => {
    const file = path.join(stateDir, "clusters", apiName, "root/etc/kubernetes/admin.conf");
    const { ca, user } = kubeconfigOf(fs.readFileSync(file, "utf8"));
    const address = machines.apiAddress(apiName)!;
    return new Api({ ...address, serverName: apiName, ca }, user);
  };
  const apply = async (objects: readonly (readonly [string, object])[]) => {
    for (const [at, object] of objects) {
      await admin().post(at, object);
    }
  };
  const run = (vm: VirtualMachine, knobs: Knobs = { initialControlPlane }) =>
    machines.runScript(vm, scriptOf(fixture, vm, knobs));
  const node = (name: string) => admin().find(`/api/v1/nodes/${name}`);
  const readyCondition = async (name: string) =>
    (await node(name))!.status.conditions.find(({ type }: Body) => type === "Ready").status;
  const pids = () =>
    machines.status().flatMap(({ processes }) => processes.flatMap(({ pid }) => pid ?? []));

  beforeAll(async () => {
    fixture = await newFixture(apiName);
    initialControlPlane = cp[0].vmId;
  });

  afterAll(() => machines.stop());

  it("brings back what a killed daemon had initialized, without a second copy of anything", async () => {
    const task = path.join(stateDir, "task.json");
    const script = scriptOf(fixture, cp[0], { initialControlPlane });
    fs.writeFileSync(task, JSON.stringify({ stateDir, binaries, limits, vm: cp[0], script }));
    const daemon = spawn(
      process.execPath,
      [
        ...loadTypeScript,
        path.join(checkout, "tools/local-azure/tests/support/simulated/killed-daemon.ts"),
        task,
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const result = await new Promise<string>((resolve) =>
      daemon.stdout.once("data", (chunk: Buffer) => resolve(`${chunk}`)),
    );
    daemon.kill("SIGKILL");
    const processes = path.join(stateDir, "clusters", apiName, "processes");
    const orphans = fs
      .readdirSync(processes)
      .filter((file) => file.endsWith(".pid"))
      .map((file) => JSON.parse(fs.readFileSync(path.join(processes, file), "utf8")));

    await machines.resume([cp[0]]);

    expect(JSON.parse(result)).toMatchObject({ exitCode: 0 });
    expect(orphans).toHaveLength(5);
    expect(orphans.filter(isAlive)).toEqual([]);
    expect(pids()).toHaveLength(5);
    expect(await node("demo-cp-1")).toBeDefined();
  });

  it("ends the initial control plane's step with the end of the log when a component refuses its arguments", async () => {
    const other = { ...fixture, apiName: "other.westeurope.cloudapp.azure.com" };
    const vm = vmOf("other-cp-1", "1", "172.16.1.4");
    await machines.create(vm);

    const { exitCode, stderr } = await machines.runScript(
      vm,
      scriptOf(other, vm, { initialControlPlane: vm.vmId, apiServer: { "no-such-flag": "1" } }),
    );

    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/unknown flag: --no-such-flag[^]*step "kubeadm init" failed/);
    expect(machines.apiAddress(other.apiName)).toBeUndefined();
    await machines.remove(vm);
    expect(fs.readdirSync(path.join(stateDir, "clusters"))).toEqual([apiName]);
  });

  it("does not let a machine join with a token that the cluster does not know", async () => {
    await machines.create(workers[0]);

    const { exitCode, stderr } = await run(workers[0], { token: "aaaaaa.0123456789abcdef" });

    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /the API does not know the join token of demo-workers-1[^]*step "search for the API" failed/,
    );
  });

  it("does not let a machine give itself a label of Kubernetes' own", async () => {
    await apply(tokenOf(workers[0].name).objects);

    const { stderr } = await run(workers[0], {
      token: tokenOf(workers[0].name).token,
      kubelet: { "node-labels": "node-role.kubernetes.io/worker=" },
    });

    expect(stderr).toMatch(
      /is not allowed to set the following labels[^]*step "kubeadm join" failed/,
    );
    expect(await node(workers[0].name)).toBeUndefined();
  });

  it("makes nodes Ready once their network runs, and names zones once the cloud provider does", async () => {
    await apply([...cniDaemonSet, ...nodeManager, ...cloudControllerManager]);
    for (const vm of [workers[1], cp[1], cp[2]]) {
      await machines.create(vm);
    }
    await apply(tokenOf(workers[1].name).objects);

    const results = await Promise.all([
      ...workers.map((vm) => run(vm, { token: tokenOf(vm.name).token })),
      run(cp[1]),
      run(cp[2]),
    ]);
    const zones = await until("zones of all nodes", async () => {
      const { items } = await admin().get("/api/v1/nodes");
      const labels = items.map(({ metadata }: Body) => [
        metadata.name,
        metadata.labels["topology.kubernetes.io/zone"],
      ]);
      return labels.every(([, zone]: string[]) => zone) && Object.fromEntries(labels);
    });

    expect(results.map(({ exitCode, stderr }) => ({ exitCode, stderr }))).toEqual(
      Array(4).fill({ exitCode: 0, stderr: "" }),
    );
    expect(zones).toEqual({
      "demo-cp-1": "westeurope-1",
      "demo-cp-2": "westeurope-2",
      "demo-cp-3": "westeurope-3",
      "demo-workers-1": "westeurope-2",
      "demo-workers-2": "westeurope-3",
    });
    expect((await node("demo-workers-1"))!.spec.providerID).toBe(
      "azure:///subscriptions/sub-1/resourceGroups/demo/providers/Microsoft.Compute/virtualMachines/demo-workers-1",
    );
    expect((await node("demo-cp-2"))!.metadata.labels).toHaveProperty([
      "node-role.kubernetes.io/control-plane",
    ]);
  });

  it("has the step of a machine name the size that it has now, which Azure's node manager does once", async () => {
    const of = "node.kubernetes.io/instance-type";
    const metadata = { labels: { [of]: "Standard_B1s" } };
    await admin().patch("/api/v1/nodes/demo-workers-1", { metadata }, mergePatch);

    const { exitCode } = await run(workers[0], { token: tokenOf("demo-workers-1").token });

    expect(exitCode).toBe(0);
    expect((await node("demo-workers-1"))!.metadata.labels[of]).toBe(workers[0].size);
  });

  it("removes the stale node of a predecessor with the token's own right, and fails without it", async () => {
    const [at, manager] = cloudControllerManager.at(-1)!;
    await admin().delete(`${at}/${(manager as Body).metadata.name}`);
    await until("the cloud provider to go", async () => {
      const { items } = await admin().get(
        "/api/v1/namespaces/kube-system/pods?labelSelector=app=ccm",
      );
      return items.length === 0;
    });
    await machines.remove(workers[0]);
    const successor = worker(1);
    await machines.create(successor);

    const anothers = await run(successor, { token: tokenOf("demo-workers-2").token });
    const own = await run(successor, { token: tokenOf("demo-workers-1").token });

    expect(anothers.stderr).toMatch(/cannot delete resource "nodes"[^]*step "kubeadm join" failed/);
    expect(own.exitCode).toBe(0);
  });

  describe("unhealthy control planes", () => {
    const podsPath = "/api/v1/namespaces/kube-system/pods";
    const staticPods = async () => {
      const { items } = await admin().get(`${podsPath}?labelSelector=tier%3Dcontrol-plane`);
      return Object.fromEntries(
        items.map(({ metadata, status }: Body) => [
          metadata.name,
          status.conditions?.find(({ type }: Body) => type === "Ready")?.status,
        ]),
      );
    };
    /** When a kubelet last renewed its lease; there is none while KWOK has not made it anew. */
    const renewed = async (name: string): Promise<string | undefined> => {
      const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
      return (await admin().find(`${leases}/${name}`))?.spec.renewTime;
    };
    const renews = (name: string, since: string | undefined) =>
      until(`the lease of ${name}`, async () => ![undefined, since].includes(await renewed(name)));
    const allReady = () =>
      Object.fromEntries(
        [1, 2, 3].flatMap((index) =>
          ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"].map((one) => [
            `${one}-demo-cp-${index}`,
            "True",
          ]),
        ),
      );

    beforeAll(() =>
      until("static pods", async () => isDeepStrictEqual(await staticPods(), allReady())),
    );

    it("show nothing of this host, but what their machines have", async () => {
      const get = (one: string) => admin().get(`/api/v1/namespaces/${one}`);
      const clusterInfo = await get("kube-public/configmaps/cluster-info");
      const configuration = await get("kube-system/configmaps/kubeadm-config");
      const etcd = await get("kube-system/pods/etcd-demo-cp-2");

      expect(clusterInfo.data.kubeconfig).toContain(`https://${apiName}:6443`);
      expect(etcd.metadata.annotations).toMatchObject({
        "kubeadm.kubernetes.io/etcd.advertise-client-urls": "https://172.16.2.4:2379",
      });
      for (const shown of [clusterInfo.data, configuration.data, etcd.spec])
        expect(JSON.stringify(shown)).not.toMatch(/zoned-machines-|demo-cp-1|172\.16\.1\.4/);
    });

    it("know of no other failure, and of no other machine", async () => {
      const fail = (...given: [string, string]) => machines.injectFailure(...given);

      await expect(fail("demo-cp-2", "dns")).rejects.toThrow(/component is dns, expected/);
      await expect(fail("demo-workers-1", "etcd")).rejects.toThrow(/no control plane/);
    });

    it.each(["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"])(
      "show an unhealthy %s by its pod, which is not ready, until failures are cleared",
      async (component) => {
        await machines.injectFailure("demo-cp-2", component);
        const unhealthy = await staticPods();
        await machines.clearFailures("demo-cp-2");

        expect(unhealthy).toEqual({ ...allReady(), [`${component}-demo-cp-2`]: "False" });
        expect(await staticPods()).toEqual(allReady());
      },
    );

    it("are not Ready while their kubelet is unhealthy, and it renews no lease", async () => {
      await machines.injectFailure("demo-cp-2", "kubelet");
      const unhealthy = await readyCondition("demo-cp-2");
      const before = { unhealthy: await renewed("demo-cp-2"), healthy: await renewed("demo-cp-3") };
      await renews("demo-cp-3", before.healthy);
      const after = await renewed("demo-cp-2");
      await machines.clearFailures("demo-cp-2");

      expect({ unhealthy, after }).toEqual({ unhealthy: "Unknown", after: before.unhealthy });
      expect(await readyCondition("demo-cp-2")).toBe("True");
      await renews("demo-cp-2", before.unhealthy);
    });

    it("take no writes while etcd of one has no space, and answer reads", async () => {
      const namespace = "/api/v1/namespaces/default";
      const write = () =>
        admin().patch(namespace, { metadata: { labels: { a: `${Date.now()}` } } });

      await machines.injectFailure("demo-cp-3", "etcd-space");

      await expect(write()).rejects.toThrow(/database space exceeded/);
      expect(await admin().isReady()).toBe(true);
      expect(await staticPods()).toEqual(allReady());
      await machines.clearFailures("demo-cp-3");
      await write();
    });

    it("are no majority with one unhealthy of two that are left, after a restart too, until it is healthy", async () => {
      await machines.injectFailure("demo-cp-1", "etcd");
      await machines.remove(cp[1]);
      const isUp = await admin().isReady();
      await machines.stop();
      await machines.resume([cp[0], cp[2], ...workers]);
      const isUpAfterRestart = await admin().isReady();

      await machines.clearFailures("demo-cp-1");

      expect({ isUp, isUpAfterRestart }).toEqual({ isUp: false, isUpAfterRestart: false });
      expect(await admin().isReady()).toBe(true);
    });
  });

  it("has no API when fewer than half of its members live, and nothing at all after the last", async () => {
    const isUpWithTwo = await admin().isReady();
    const last = admin();
    await machines.remove(cp[0]);
    const isUpWithOne = await last.isReady();
    const running = machines.status()[0]!.processes.map(({ name }) => name);
    const left = pids().map(identityOf);
    await machines.remove(cp[2]);

    expect({ isUpWithTwo, isUpWithOne, running }).toEqual({
      isUpWithTwo: true,
      isUpWithOne: false,
      running: ["etcd"],
    });
    expect(left.map(isAlive)).toEqual([false]);
    expect(machines.apiAddress(apiName)).toBeUndefined();
    expect(fs.readdirSync(path.join(stateDir, "clusters"))).toEqual([]);
  });
});
