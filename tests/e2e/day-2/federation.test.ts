import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { asPlanned, LocalCloud, succeeded, unchanged } from "../../../tools/lab/local-cloud";
import { npm } from "../npm";

jest.setTimeout(900_000);

const parent = mkdtempSync(join(tmpdir(), "zoned-e2e-"));
const state = join(parent, "state");
afterAll(() => rmSync(parent, { recursive: true, force: true, maxRetries: 5 }));

interface Machine {
  readonly identity?: { readonly userAssignedIdentities?: object };
}
interface Pod {
  readonly spec: { readonly containers: [{ readonly env?: { name: string; value?: string }[] }] };
}

/** One life, in which the identity leaves the control plane, by Azure's own cloud controller manager. */
describe("a cluster whose machines carry no identity", () => {
  let cloud: LocalCloud;
  afterAll(() => (existsSync(state) ? npm(state, "stop", "--discard") : undefined));

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

  it("begins as one whose control plane carries it", async () => {
    await npm(state, "start", "--stack", "local");
    cloud = await LocalCloud.in(state, "local", { machineIdentity: false });

    expect(await identities()).toBe(1);
  });

  it("has API servers admit the issuer first, and changes nothing else of how its pods log in", async () => {
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
    unchanged(await cloud.stack.up());
  });

  it("goes back by one update", async () => {
    await cloud.stack.configure({});

    asPlanned(await cloud.stack.up());

    expect([await identities(), await isFederated()]).toEqual([1, false]);
    await expose("back");
  });

  it("leaves nothing behind, and can begin without it", async () => {
    succeeded(await cloud.stack.destroy());
    expect(await cloud.isEmpty()).toBe(true);
    await cloud.stack.configure({ machineIdentity: false });

    asPlanned(await cloud.stack.up());
    cloud.renewKubeconfig();

    expect([await identities(), await isFederated()]).toEqual([0, true]);
    await expose("web");
    await cloud.kubectl("delete", "service", "web");
    unchanged(await cloud.stack.up());
  });
});
