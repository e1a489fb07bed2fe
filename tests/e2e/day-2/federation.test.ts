import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";
import { useOwnPrograms } from "../../../tools/local-azure/machines/own-programs";

jest.setTimeout(900_000);

const settings = {
  ...fewAddOns,
  cloudProvider: true,
  workerPools: [{ name: "workers", count: 1, size: "Standard_B2s" }],
};
const federated = { ...settings, machineIdentity: false };

interface Machine {
  readonly identity?: { readonly userAssignedIdentities?: object };
}
interface Pod {
  readonly spec: { readonly containers: [{ readonly env?: { name: string; value?: string }[] }] };
}

/** One life, in which the identity leaves the control plane, by Azure's own cloud controller manager. */
describe("a cluster whose machines carry no identity", () => {
  let cloud: LocalCloud;
  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings, useOwnPrograms);
    succeeded(await cloud.stack.up("--skip-preview"));
    await cloud.stack.configure(federated);
  });
  afterAll(() => cloud?.stop());

  const identities = async (): Promise<number> => {
    const machine = (await cloud.inGroup(
      "GET",
      "/providers/Microsoft.Compute/virtualMachines/zoned-local-cp-1",
    )) as Machine;
    return Object.keys(machine.identity?.userAssignedIdentities ?? {}).length;
  };
  /** Whether the cloud controller manager has what it logs in with as its service account. */
  const isFederated = async (): Promise<boolean> => {
    const selector = ["--selector", "k8s-app=cloud-controller-manager"];
    const pods = await cloud.get<Pod>("pods", "--namespace", "kube-system", ...selector);
    return pods.every(({ spec }) =>
      spec.containers[0].env?.some(({ name }) => name === "AZURE_FEDERATED_TOKEN_FILE"),
    );
  };
  const expose = async (service: string): Promise<void> => {
    await cloud.kubectl("create", "service", "loadbalancer", service, "--tcp", "80:8080");
    await cloud.kubectl(
      ...["wait", `service/${service}`, "--timeout", "540s"],
      ...["--for", "jsonpath={.status.loadBalancer.ingress[0].ip}"],
    );
  };

  it("has API servers admit the issuer first, and changes nothing else of how its pods log in", async () => {
    expect(await identities()).toBe(1);

    const { stdout } = asPlanned(await cloud.stack.up());

    expect(stdout).toMatch(/admit tokens of https:\S+\. Run pulumi up again/);
    expect([await identities(), await isFederated()]).toEqual([1, false]);
  });

  it("then has the cloud provider log in by tokens of its service account", async () => {
    const { stdout } = asPlanned(await cloud.stack.up());

    expect(stdout).toMatch(/log in by tokens of their service accounts\. Run pulumi up again/);
    expect([await identities(), await isFederated()]).toEqual([1, true]);
  });

  it("then takes the identity off, and goes on making balancers", async () => {
    asPlanned(await cloud.stack.up());

    expect([await identities(), await isFederated()]).toEqual([0, true]);
    await expose("web");
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("goes back by one update", async () => {
    await cloud.stack.configure(settings);

    asPlanned(await cloud.stack.up());

    expect([await identities(), await isFederated()]).toEqual([1, false]);
    await expose("back");
  });

  it("leaves nothing behind, and can begin without it", async () => {
    succeeded(await cloud.stack.destroy());
    expect(await cloud.isEmpty()).toBe(true);
    await cloud.stack.configure(federated);

    asPlanned(await cloud.stack.up());
    cloud.renewKubeconfig();

    expect([await identities(), await isFederated()]).toEqual([0, true]);
    await expose("web");
    unchanged(await cloud.stack.up("--skip-preview"));
  });
});
