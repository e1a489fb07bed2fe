import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { authorityFile } from "../../../tools/local-azure/arm/rest/listener";
import { soon } from "../../../tools/local-azure/tests/support/arm/clients";
import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";
import { useOwnPrograms } from "../../../tools/local-azure/machines/own-programs";
import { checkout } from "../../../tools/shared/checkout";
import { typedIn } from "../../support/page";

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

const location = "southeastasia";
const inShop = (path: string): string =>
  `${subscriptionPath}/resourceGroups/shop/providers/${path}`;
const registry = inShop("Microsoft.ContainerRegistry/registries/shopimages");
const diskEncryptionSet = inShop("Microsoft.Compute/diskEncryptionSets/shop");
const kubelets = inShop("Microsoft.ManagedIdentity/userAssignedIdentities/shop-kubelets");
const acrPull = "7f951dda-4ed3-4680-a7ca-43fe172d538d";

/** The settings that docs/identities.md has somebody type. */
const typed = typedIn(readFileSync(join(checkout, "docs/identities.md"), "utf8")).filter((line) =>
  line.startsWith("pulumi config set "),
);
/** Those that come later on the page in the place of others: of the kubelets' identity, and of Entra. */
const ofTenant = /--path '?entra\.(tenant|application APPLICATION|admins\[0\]' GROUP)/;
const inTheirPlace = /kubeletIdentityId|--path '?entra\.(issuer|application k|admins\[0\]' c|ca)/;

/** What `az` answers, and what the words stand for that the page leaves open. */
const shell = `set -eu
az() {
  case "$1" in
    account) echo ${account.tenantId} ;;
    acr) echo ${registry} ;;
    identity) echo ${kubelets} ;;
    disk-encryption-set) echo ${diskEncryptionSet} ;;
  esac
}
`;
const openWords = [
  ["/subscriptions/SUBSCRIPTION", subscriptionPath],
  [" APPLICATION ", " 2f0c7a1e-8f62-4c1b-9d0e-3a5b6c7d8e9f "],
  [" GROUP ", " 7b1d2c3e-4f50-4a61-8b72-9c83ad94be05 "],
] as const;

/** One life, in which the identity leaves the control plane, by Azure's own cloud controller manager. */
describe("a cluster whose machines carry no identity", () => {
  let cloud: LocalCloud;
  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings, useOwnPrograms);
    succeeded(await cloud.stack.up("--skip-preview"));
    await cloud.stack.configure(federated);
  });
  afterAll(() => cloud?.stop());

  /** Names of those that the control plane carries. */
  const identities = async (): Promise<string[]> => {
    const machine = (await cloud.inGroup(
      "GET",
      "/providers/Microsoft.Compute/virtualMachines/zoned-local-cp-1",
    )) as Machine;
    const ids = Object.keys(machine.identity?.userAssignedIdentities ?? {});
    return ids.map((id) => id.split("/").at(-1)!);
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
    expect(await identities()).toEqual(["zoned-local"]);

    const { stdout } = asPlanned(await cloud.stack.up());

    expect(stdout).toMatch(/admit tokens of https:\S+\. Run pulumi up again/);
    expect([await identities(), await isFederated()]).toEqual([["zoned-local"], false]);
  });

  it("then has the cloud provider log in by tokens of its service account", async () => {
    const { stdout } = asPlanned(await cloud.stack.up());

    expect(stdout).toMatch(/log in by tokens of their service accounts\. Run pulumi up again/);
    expect([await identities(), await isFederated()]).toEqual([["zoned-local"], true]);
  });

  it("then takes the identity off, and goes on making balancers", async () => {
    asPlanned(await cloud.stack.up());

    expect([await identities(), await isFederated()]).toEqual([[], true]);
    await expose("web");
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("goes back by one update", async () => {
    await cloud.stack.configure(settings);

    asPlanned(await cloud.stack.up());

    expect([await identities(), await isFederated()]).toEqual([["zoned-local"], false]);
    await expose("back");
  });

  it("leaves nothing behind when it is destroyed with its Services", async () => {
    succeeded(await cloud.stack.destroy());

    expect(await cloud.isEmpty()).toBe(true);
  });

  /** Types lines of the page in a shell; a prompt gets a password. */
  async function type(lines: readonly string[]): Promise<void> {
    const words = [...openWords, ["issuer-ca.pem", authorityFile(cloud.state)] as const].reduce(
      (text, [from, to]) => text.replaceAll(from, to),
      lines.join("\n"),
    );
    const flags = `--stack local --config-file ${cloud.stack.place.config}`;
    const script = `${shell}pulumi() { command pulumi "$@" ${flags}; }\n${words}`;
    const options = { cwd: checkout, env: cloud.environment() };
    const typing = promisify(execFile)("bash", ["-c", script], options);
    typing.child.stdin!.end("of-this-registry-alone");
    await typing;
  }

  it("begins with all at once that docs/identities.md has one type", async () => {
    const { resources, compute } = cloud.sdks();
    await cloud.register("EncryptionAtHost");
    await resources.resourceGroups.createOrUpdate("shop", { location });
    await resources.resources.beginCreateOrUpdateByIdAndWait(
      ...([
        registry,
        "2025-11-01",
        { location, sku: { name: "Basic" }, properties: {} },
        soon,
      ] as const),
    );
    await compute.diskEncryptionSets.beginCreateOrUpdateAndWait(
      "shop",
      "shop",
      {
        location,
        identity: { type: "SystemAssigned" },
        activeKey: { keyUrl: "https://shop.vault.azure.net/keys/disks/1" },
      },
      soon,
    );
    await cloud.stack.configure(settings);
    await type(typed.filter((line) => !inTheirPlace.test(line)));

    asPlanned(await cloud.stack.up());
    cloud.renewKubeconfig();

    expect([await identities(), await isFederated()]).toEqual([["zoned-local-kubelet"], true]);
    await expose("web");
    const { loginKubeconfig } = (await cloud.stack.outputs()) as { loginKubeconfig: string };
    expect(loginKubeconfig).toContain(account.tenantId);
    unchanged(await cloud.stack.up("--skip-preview"));
  });

  it("takes what the page has in the place of some of it, in place", async () => {
    const { identities: managed, authorization } = cloud.sdks();
    const { principalId } = await managed.userAssignedIdentities.createOrUpdate(
      ...(["shop", "shop-kubelets", { location }] as const),
    );
    await authorization.roleAssignments.create(registry, "5c1b0c7e-3f0a-4a53-9d0e-2f6c3b1a7e88", {
      ...{ principalId: principalId!, principalType: "ServicePrincipal" },
      roleDefinitionId: `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${acrPull}`,
    });
    await cloud.stack.configure(settings);
    await type(typed.filter((line) => !ofTenant.test(line)));

    const { steps } = asPlanned(await cloud.stack.up());

    expect(steps.filter((step) => /replace.*-vm$/.test(step))).toEqual([]);
    expect(await identities()).toEqual(["shop-kubelets"]);
    const { loginKubeconfig } = (await cloud.stack.outputs()) as { loginKubeconfig: string };
    expect(loginKubeconfig).toContain("--oidc-issuer-url=https://login.example.org/realms/demo");
  });
});
