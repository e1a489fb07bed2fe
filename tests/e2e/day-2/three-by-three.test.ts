import { versions } from "../../../components/versions";
import { LoggedRequest } from "../../../tools/local-azure/arm/requests";
import {
  asPlanned,
  LocalCloud,
  refused,
  unchanged,
  succeeded,
} from "../../../tools/lab/local-cloud";

/** Nothing but the machines is of interest here, so the add-ons are the smallest. */
const small = { cni: "flannel", cloudProvider: false, diskDriver: false, storageClasses: false };
const otherImage = { ...small, imageVersion: "24.04.202608110" };

const vm = /\/virtualMachines\/zoned-prod-([a-z]+-\d)$/i;
const step = /\/virtualMachines\/zoned-prod-([a-z]+-\d)\/extensions\/bootstrap$/i;

/** What happened to machines and their steps, as `gone cp-1`, `made cp-1`, `joined cp-1`. */
function story(requests: readonly LoggedRequest[]): string[] {
  return requests.flatMap(({ method, id, status }) => {
    const machine = vm.exec(id)?.[1];
    const joined = step.exec(id)?.[1];
    if (machine !== undefined && method === "DELETE") return [`gone ${machine}`];
    if (machine !== undefined && method === "PUT") return [`made ${machine}`];
    if (joined !== undefined && method === "SCRIPT") {
      return [`${status === 0 ? "joined" : "failed"} ${joined}`];
    }
    return [];
  });
}

/** One life of a cluster of three control planes and three workers. */
describe("three control planes and three workers", () => {
  let cloud: LocalCloud;
  let read = 0;
  let reinitialize = "";
  const news = async () => {
    const requests = await cloud.requests();
    const fresh = requests.slice(read);
    read = requests.length;
    return story(fresh);
  };
  const vmPath = (machine: string) =>
    `/providers/Microsoft.Compute/virtualMachines/zoned-prod-${machine}`;
  beforeAll(async () => {
    cloud = await LocalCloud.start("prod", small);
  });
  afterAll(() => cloud?.stop());

  it("stops with the step's name when kubeadm init fails, and runs that step again after the fix", async () => {
    await cloud.fault({
      method: "SCRIPT",
      id: "zoned-prod-cp-1/extensions/bootstrap",
      script: { exitCode: 7, stdout: "", stderr: 'step "kubeadm init" failed with exit code 7' },
    });

    expect(refused(await cloud.stack.up("--skip-preview"))).toMatch(
      /step \\?"kubeadm init\\?" failed with exit code 7/,
    );
    const first = await news();
    expect(first.filter((event) => /^(failed|joined)/.test(event))).toEqual(["failed cp-1"]);

    // kubeadm init goes well now, and the join after it does not.
    await cloud.clearFaults();
    await cloud.fault({
      method: "SCRIPT",
      id: "zoned-prod-cp-2/extensions/bootstrap",
      script: { exitCode: 3, stdout: "", stderr: 'step "kubeadm join" failed with exit code 3' },
    });
    expect(refused(await cloud.stack.up("--skip-preview"))).toMatch(
      /step \\?"kubeadm join\\?" failed with exit code 3/,
    );

    const second = (await news()).filter((event) => /cp-\d/.test(event));
    expect(second).toEqual(["joined cp-1", "failed cp-2"]);
  });

  it("never initializes twice, nor loses two at once, when the image changes after half a first update", async () => {
    await cloud.clearFaults();
    await cloud.stack.configure(otherImage);

    // The initial control plane is the only member, and replacing it would lose everything.
    const said = refused(await cloud.stack.up());
    expect(said).toMatch(/zoned-prod-cp-2: its bootstrap step is Failed/);
    expect(await news()).toEqual([]);

    await cloud.stack.configure(small);
    asPlanned(await cloud.stack.up());
    const events = await news();
    expect(events.filter((event) => /^(gone|made) cp/.test(event))).toEqual([]);
    expect(events.filter((event) => /^joined cp/.test(event))).toEqual([
      "joined cp-2",
      "joined cp-3",
    ]);
    unchanged(await cloud.stack.up("--skip-preview"));
    await news();
  });

  it("says what to do when two of three are lost, also while one still stands", async () => {
    for (const machine of ["cp-2", "cp-3"]) await cloud.inGroup("DELETE", vmPath(machine));

    const said = refused(await cloud.stack.up());

    expect(said).toMatch(/Azure has 1 of them left.*pulumi destroy/s);
    await news();
    const command = await cloud.runSuggested(said, /config set reinitialize [\w-]+/);
    reinitialize = command.split(" ").at(-1)!;
  });

  it("initializes a whole new cluster by one update, when that very cluster may be lost", async () => {
    asPlanned(await cloud.stack.up());

    const events = await news();
    const machines = ["cp-1", "cp-2", "cp-3", "workers-1", "workers-2", "workers-3"];
    expect(events.filter((event) => /^made/.test(event)).sort()).toEqual(
      machines.map((name) => `made ${name}`),
    );
    expect(events.filter((event) => /^joined/.test(event)).sort()).toEqual(
      machines.map((name) => `joined ${name}`),
    );
    const nodes = await cloud.get<{ metadata: { name: string } }>("nodes");
    expect(nodes).toHaveLength(6);
    await cloud.kubectl("get", "daemonset", "kube-flannel-ds", "-n", "kube-flannel");
  });

  /** The setting that was used is spent, and stays in all that follows. */
  const spent = () => ({ ...otherImage, reinitialize });
  const resized = () => ({ ...spent(), controlPlaneSize: "Standard_D4s_v5" });
  const bigger = () => ({ ...spent(), controlPlaneSize: "Standard_D8s_v5" });

  it("replaces control planes strictly one at a time, then workers, and stops where a join fails", async () => {
    await cloud.stack.configure(spent());
    await cloud.fault({
      method: "SCRIPT",
      id: "zoned-prod-cp-2/extensions/bootstrap",
      script: { exitCode: 3, stdout: "", stderr: 'step "kubeadm join" failed with exit code 3' },
    });
    const replaced = (...names: string[]) =>
      names.flatMap((name) => [`gone ${name}`, `made ${name}`, `joined ${name}`]);

    refused(await cloud.stack.up("--skip-preview"));
    expect(await news()).toEqual([
      ...replaced("cp-1"),
      ...["gone cp-2", "made cp-2", "failed cp-2"],
    ]);

    await cloud.clearFaults();
    asPlanned(await cloud.stack.up());
    expect(await news()).toEqual([
      "joined cp-2",
      ...replaced("cp-3", "workers-1", "workers-2", "workers-3"),
    ]);
    unchanged(await cloud.stack.up("--skip-preview"));
    expect(await cloud.get("nodes")).toHaveLength(6);
    await news();
  });

  it("resizes one machine after another, and loses none when somebody has taken all tags away", async () => {
    for (const machine of ["cp-1", "cp-2", "cp-3", "workers-1", "workers-2", "workers-3"]) {
      const { tags: _, ...vm } = (await cloud.inGroup("GET", vmPath(machine))) as { tags: object };
      await cloud.inGroup("PUT", vmPath(machine), { ...vm, tags: {} });
    }
    succeeded(await cloud.stack.refresh());
    await news();
    await cloud.stack.configure(resized());

    asPlanned(await cloud.stack.up());

    const events = await news();
    expect(events.filter((event) => /cp/.test(event))).toEqual(
      ["cp-1", "cp-2", "cp-3"].flatMap((name) => [`made ${name}`, `joined ${name}`]),
    );
    expect(events.filter((event) => /^gone/.test(event))).toEqual([]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("refuses to resize anything while a member's etcd is unhealthy", async () => {
    await cloud.stack.configure(bigger());
    await cloud.injectFailure("cp-2", "etcd");

    const said = refused(await cloud.stack.up());

    await cloud.clearFailures("cp-2");
    expect(said).toMatch(
      /would resize zoned-prod-cp-1, zoned-prod-cp-2, zoned-prod-cp-3, .*zoned-prod-cp-2: its etcd is not ready/s,
    );
    expect(await news()).toEqual([]);
  });

  it("refuses to touch a cluster whose API does not answer, unless read so for a while", async () => {
    await cloud.stack.configure(bigger());
    for (const machine of ["cp-2", "cp-3"]) await cloud.injectFailure(machine, "etcd");
    try {
      const said = refused(await cloud.stack.preview());
      expect(said).toMatch(/does not answer from here/);
      await cloud.runSuggested(said, /config set skipHealthCheckUntil \w+/);
    } finally {
      for (const machine of ["cp-2", "cp-3"]) await cloud.clearFailures(machine);
    }
    await cloud.injectFailure("cp-2", "kube-scheduler");
    succeeded(await cloud.stack.preview());
    await cloud.clearFailures("cp-2");
    expect(await news()).toEqual([]);
  });

  it("changes what touches no machine while a member is unhealthy", async () => {
    await cloud.injectFailure("cp-2", "kube-scheduler");
    await cloud.stack.configure({ ...resized(), apiAccessCidrs: ["198.51.100.0/24"] });

    asPlanned(await cloud.stack.up());

    expect(await news()).toEqual([]);
    await cloud.clearFailures("cp-2");
  });

  it("replaces the unhealthy one first, and the others once it is healthy", async () => {
    await cloud.injectFailure("cp-3", "etcd");
    await cloud.stack.configure({ ...resized(), imageVersion: versions.ubuntuImage });

    asPlanned(await cloud.stack.up());

    expect((await news()).filter((event) => /^(gone|joined) cp/.test(event))).toEqual(
      ["cp-3", "cp-1", "cp-2"].flatMap((name) => [`gone ${name}`, `joined ${name}`]),
    );
  });

  it("makes a machine anew that was deleted behind its back, by a plain update", async () => {
    for (const machine of ["cp-2", "workers-3"]) await cloud.inGroup("DELETE", vmPath(machine));
    await news();

    asPlanned(await cloud.stack.up());

    expect((await news()).filter((event) => /^joined/.test(event)).sort()).toEqual([
      "joined cp-2",
      "joined workers-3",
    ]);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("is protected against destroy, and goes once that is taken away", async () => {
    refused(await cloud.stack.destroy());

    await cloud.stack.unprotect();
    succeeded(await cloud.stack.destroy());
    expect(await cloud.isEmpty()).toBe(true);
  });
});
