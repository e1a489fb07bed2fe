import { LocalCloud, refused, unchanged, well } from "./local-cloud";
import { LoggedRequest } from "../../local-azure/resource-manager/request-log";

jest.setTimeout(900_000);

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
  let told = 0;
  const news = async () => {
    const requests = await cloud.requests();
    const fresh = requests.slice(told);
    told = requests.length;
    return story(fresh);
  };
  beforeAll(async () => {
    cloud = await LocalCloud.start("prod", small);
  });
  afterAll(() => cloud?.stop());

  it("stops with the step's name when founding fails, and runs that step again after mending", async () => {
    await cloud.fault({
      method: "SCRIPT",
      id: "zoned-prod-cp-1/extensions/bootstrap",
      script: { exitCode: 7, stdout: "", stderr: 'step "kubeadm init" failed with exit code 7' },
    });

    expect(refused(await cloud.stack.up())).toMatch(
      /step \\?"kubeadm init\\?" failed with exit code 7/,
    );
    const first = await news();
    expect(first.filter((event) => /^(failed|joined)/.test(event))).toEqual(["failed cp-1"]);

    // Founding goes well now, and the join after it does not.
    await cloud.mend();
    await cloud.fault({
      method: "SCRIPT",
      id: "zoned-prod-cp-2/extensions/bootstrap",
      script: { exitCode: 3, stdout: "", stderr: 'step "kubeadm join" failed with exit code 3' },
    });
    expect(refused(await cloud.stack.up())).toMatch(
      /step \\?"kubeadm join\\?" failed with exit code 3/,
    );

    const second = (await news()).filter((event) => /cp-\d/.test(event));
    expect(second).toEqual(["joined cp-1", "failed cp-2"]);
  });

  it("never founds twice, nor loses two at once, when the image changes after half a first up", async () => {
    await cloud.mend();
    await cloud.stack.configure(otherImage);

    // The founder is the only member, and replacing it would lose everything.
    expect(refused(await cloud.stack.up())).toMatch(/zoned-prod-cp-3 is not known to be a member/);
    expect(await news()).toEqual([]);

    await cloud.stack.configure(small);
    well(await cloud.stack.up());
    const events = await news();
    expect(events.filter((event) => /^(gone|made) cp/.test(event))).toEqual([]);
    expect(events.filter((event) => /^joined cp/.test(event))).toEqual([
      "joined cp-2",
      "joined cp-3",
    ]);
    unchanged(await cloud.stack.up());
    await news();
  });

  it("replaces control planes strictly one at a time, then workers one after another", async () => {
    await cloud.stack.configure(otherImage);

    well(await cloud.stack.up());

    const machines = ["cp-1", "cp-2", "cp-3", "workers-1", "workers-2", "workers-3"];
    expect(await news()).toEqual(
      machines.flatMap((name) => [`gone ${name}`, `made ${name}`, `joined ${name}`]),
    );
    unchanged(await cloud.stack.up());
    const nodes = await cloud.get<{ metadata: { name: string } }>("nodes");
    expect(nodes).toHaveLength(6);
    await news();
  });

  it("stops before the next machine when a join fails in the middle", async () => {
    await cloud.stack.configure(small);
    await cloud.fault({
      method: "SCRIPT",
      id: "zoned-prod-cp-2/extensions/bootstrap",
      script: { exitCode: 3, stdout: "", stderr: 'step "kubeadm join" failed with exit code 3' },
    });

    refused(await cloud.stack.up());
    expect((await news()).slice(0, 6)).toEqual([
      "gone cp-1",
      "made cp-1",
      "joined cp-1",
      "gone cp-2",
      "made cp-2",
      "failed cp-2",
    ]);

    await cloud.mend();
    well(await cloud.stack.up());
    expect((await news()).filter((event) => /cp/.test(event))).toEqual([
      "joined cp-2",
      "gone cp-3",
      "made cp-3",
      "joined cp-3",
    ]);
    unchanged(await cloud.stack.up());
  });

  it("resizes one machine after another, each once the one before it is well again", async () => {
    await news();
    await cloud.stack.configure({ ...small, controlPlaneSize: "Standard_D4s_v5" });

    well(await cloud.stack.up());

    expect((await news()).filter((event) => /cp/.test(event))).toEqual(
      ["cp-1", "cp-2", "cp-3"].flatMap((name) => [`made ${name}`, `joined ${name}`]),
    );
  });

  it("refuses another version of Kubernetes on a living cluster", async () => {
    await cloud.stack.configure({
      ...small,
      controlPlaneSize: "Standard_D4s_v5",
      kubernetesVersion: "1.36.4",
    });

    expect(refused(await cloud.stack.up())).toMatch(
      /kubernetesVersion is 1\.36\.4 and the cluster runs 1\.36\.3/,
    );
  });

  it("says what to do when a destroy was interrupted and somebody runs up", async () => {
    await cloud.stack.configure({ ...small, controlPlaneSize: "Standard_D4s_v5" });
    for (const machine of ["cp-2", "cp-3"]) {
      await cloud.inGroup(
        "DELETE",
        `/providers/Microsoft.Compute/virtualMachines/zoned-prod-${machine}`,
      );
    }

    expect(refused(await cloud.stack.up())).toMatch(/Azure has 1 of them left.*pulumi destroy/s);
  });

  it("is protected against destroy, and goes once that is taken away", async () => {
    refused(await cloud.stack.destroy());

    await cloud.stack.unprotect();
    well(await cloud.stack.destroy());
    expect(await cloud.isEmpty()).toBe(true);
  });
});
