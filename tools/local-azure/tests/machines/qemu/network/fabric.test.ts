import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { registryLogin } from "../../../../../../components/kubeadm/registries";
import { pluginApi } from "../../../../../../tests/support/credential-provider";
import { testFolder } from "../../../../../../tests/support/test-folder";
import { credentialProvider } from "../../../../../programs/controllers";
import { placesOf } from "../../../../../programs/installs";
import { account } from "../../../../arm/resources/ids";
import { authorityFile, certificateIn, type Served } from "../../../../arm/rest/listener";
import { serveRest } from "../../../../arm/rest/rest";
import { BlobService } from "../../../../blobs/blob-service";
import { BlobStore } from "../../../../blobs/store";
import { TokenService } from "../../../../entra";
import { run } from "../../../../machines/qemu/process";
import type { Host } from "../../../../machines/qemu/host";
import { Fabric } from "../../../../machines/qemu/network/fabric";
import { networksOf } from "../../../../machines/qemu/network/network-view";
import { RegistryService } from "../../../../registries/registry-service";
import { createResources, newArm } from "../../../support/arm/fixture";
import { group, roleDefinition, valid } from "../../../support/arm/valid-resources";
import { MachinesInNetwork } from "../../../support/qemu/fixture";

const state = testFolder();
const world = new MachinesInNetwork();
const { arm } = newArm();
const identityId = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubelets`;
const pull = `${valid.registry[0]}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-000000000005`;

let fabric: Fabric;
let services: Served[];
let clientId: string;

beforeAll(async () => {
  await createResources(arm, "machine");
  const { body } = await arm.put(identityId, { location: "westeurope" });
  clientId = String(body["clientId"]);
  await arm.put(valid.machine[0], {
    ...valid.machine[1],
    identity: { type: "UserAssigned", userAssignedIdentities: { [identityId]: {} } },
  });
  const acrPull = roleDefinition("7f951dda-4ed3-4680-a7ca-43fe172d538d");
  await arm.put(pull, { principalId: body["principalId"], roleDefinitionId: acrPull });
  const certificate = await certificateIn(state);
  const store = new BlobStore(join(state, "blobs"), () => new Date());
  const [blob, login, registry, resourceManager] = (services = [
    await new BlobService(arm, store).serve(0, certificate),
    await new TokenService(arm, async () => undefined).serve(0, certificate),
    await new RegistryService(arm, state).serve(0, certificate),
    await serveRest(arm, 0),
  ]) as [Served, Served, Served, Served];
  const sockets = join(state, "sockets");
  mkdirSync(sockets);
  const host = {
    ...{ namespaces: world.namespaces, sockets, mirror: state, accelerator: "tcg" },
    log: () => undefined,
  };
  fabric = new Fabric(host as Partial<Host> as Host, join(state, "networks"));
  const others = { resourceManager: resourceManager.port, proxy: blob.port };
  const [blobs, logins, registries] = [blob.port, login.port, registry.port];
  await fabric.openServices({ blob: blobs, login: logins, registry: registries, ...others });
  await fabric.apply(arm.view);
  await world.add(networksOf(arm.view)[0]!, "172.16.1.4");
  writeFileSync(join(state, "resolv.conf"), "nameserver 168.63.129.16\n");
});
afterAll(async () => {
  await fabric.stop({ remove: false });
  await world.remove();
  await Promise.all(services.map((service) => service.close()));
});

/** What a script says on the machine, which has Azure's name server and no proxy. */
const onMachine = (script: string): Promise<string> =>
  run(
    world.namespaces.within(world.namespaces.of("machine-172-16-1-4"), [
      ...["unshare", "--mount", "sh", "-c"],
      `mount --bind ${state}/resolv.conf "$(readlink -f /etc/resolv.conf)"; ${script}`,
    ]),
    { env: { PATH: process.env.PATH, SSL_CERT_FILE: authorityFile(state) } },
  );

it("leads a machine to each of Azure's services by the name that it has on Azure", async () => {
  const said = await onMachine(
    ["login.microsoftonline.com", "zonedbackups.blob.core.windows.net", "zonedimages.azurecr.io"]
      .map(
        (name) =>
          `curl -sSo /dev/null -w '%{http_code} ' --cacert $SSL_CERT_FILE https://${name}/v2/`,
      )
      .join("; "),
  );

  expect(said).toBe("404 403 401 ");
});

it("has a kubelet's plugin log in at a registry by the identity that the metadata service knows", async () => {
  const { content } = registryLogin({
    ...{ tenantId: account.tenantId, clientId },
    resourceManagerEndpoint: "https://management.azure.com",
  });
  writeFileSync(join(state, "registries.json"), content);
  const image = "zonedimages.azurecr.io/shop/app:1";
  const request = { apiVersion: pluginApi, kind: "CredentialProviderRequest", image };
  const plugin = placesOf(credentialProvider)["acr-credential-provider"]!;

  const said = await onMachine(
    `echo '${JSON.stringify(request)}' | ${plugin} ${state}/registries.json 2>/dev/null`,
  );

  const { auth } = JSON.parse(said) as { auth: Record<string, { username: string }> };
  expect(auth["zonedimages.azurecr.io"]?.username).toBe("00000000-0000-0000-0000-000000000000");
});

it("tells a machine of the events that Resource Manager has for it", async () => {
  const perform = async () => undefined;
  const { id } = arm.scheduledEvents.schedule({ machine: "cp-1", type: "Reboot", perform });

  const said = await onMachine(
    "curl -sS --noproxy '*' -H Metadata:true 'http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01'",
  );

  expect(JSON.parse(said)).toMatchObject({ Events: [{ EventId: id, EventType: "Reboot" }] });
});
