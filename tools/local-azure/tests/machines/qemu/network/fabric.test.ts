import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { registryLogin } from "../../../../../../components/kubeadm/registries";
import { pluginApi } from "../../../../../../tests/support/credential-provider";
import { testFolder } from "../../../../../../tests/support/test-folder";
import { credentialProvider } from "../../../../../programs/controllers";
import { placesOf } from "../../../../../programs/installs";
import { account } from "../../../../arm/resources/resource";
import { authorityFile, certificateIn, type Served } from "../../../../arm/rest/listener";
import { serveRest } from "../../../../arm/rest/rest";
import { BlobService } from "../../../../blobs/blob-service";
import { BlobStore } from "../../../../blobs/store";
import { TokenService } from "../../../../entra";
import { run } from "../../../../../shared/run";
import type { Host } from "../../../../machines/qemu/host";
import { Fabric } from "../../../../machines/qemu/network/fabric";
import { networksOf, type VirtualNetwork } from "../../../../machines/qemu/network/network-view";
import { RegistryService } from "../../../../registries/registry-service";
import { createResources, newArm } from "../../../support/arm/fixture";
import { group, roleDefinition, valid } from "../../../support/arm/valid-resources";
import { MachinesInNetwork } from "../../../support/qemu/fixture";
import { operatorAddress } from "../../../../machines/qemu/network/namespaces";

describe("the fabric", () => {
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
});

describe("a floating address", () => {
  const service = "203.0.113.7";
  const machines = ["172.16.1.16", "172.16.1.17"];
  const network = (sources: string): VirtualNetwork => ({
    key: "0badcafe",
    ranges: ["172.16.0.0/16"],
    subnets: [
      {
        ...{ bridge: "s0badcafe", prefix: "172.16.1.0/24", gateway: "172.16.1.1" },
        isBehindFirewall: false,
        rules: [
          {
            ...{ access: "Allow", direction: "Inbound", priority: 500, protocol: "Tcp" },
            ...{ sourceAddressPrefix: sources, sourcePortRange: "*" },
            ...{ destinationAddressPrefix: service, destinationPortRange: "80" },
          },
        ],
      },
    ],
    balanced: [
      {
        ...{ address: service, port: 80, protocol: "Tcp", backendPort: 80 },
        ...{ isFloating: true, isInternal: false, backends: machines },
      },
    ],
    ...{ destinations: [service], names: {} },
  });

  const world = new MachinesInNetwork();
  const ask = (): Promise<string> =>
    world.ask(world.namespaces.internet, `http://${service}/`, "--interface", operatorAddress);

  beforeAll(async () => {
    await world.shape(network("Internet"));
    // As kube-proxy has it, a machine has the Service's address itself.
    for (const address of machines) await world.add(network("Internet"), address, service);
  });
  afterAll(() => world.remove());

  it("leads each connection to a healthy machine, which sees who sent it and to what address", async () => {
    await world.follow(network("Internet"), machines);
    const said = new Set<string>();
    for (let time = 0; time < 12; time += 1) said.add(await ask());
    expect([...said].sort()).toEqual(machines.map((address) => `${address} ${operatorAddress}`));

    await world.follow(network("Internet"), machines.slice(1));
    for (let time = 0; time < 4; time += 1) expect(await ask()).toContain(machines[1]);
  });

  it("judges by the rules of the security group with the address that the sender wrote", async () => {
    await world.follow(network("192.0.2.0/24"), machines);

    await expect(ask()).rejects.toThrow("timed out");
  });
});

describe("an internal balancer", () => {
  const [first = "", second = ""] = ["10.1.1.28", "10.1.1.27"];
  const both = [second, first];
  const service = "10.1.1.20";

  /** One subnet for machines and balancer, as somebody is given it. */
  const network = ({ isFloating = false, deny = "" } = {}): VirtualNetwork => {
    const rule = (priority: number, access: string, source: string) => ({
      ...{ access, direction: "Inbound", priority, protocol: "*" },
      ...{ sourceAddressPrefix: source, sourcePortRange: "*" },
      ...{ destinationAddressPrefix: "*", destinationPortRange: "*" },
    });
    const frontend = isFloating ? service : "10.1.1.29";
    return {
      key: "0badcafd",
      ranges: ["10.1.0.0/16"],
      subnets: [
        {
          ...{ bridge: "s0badcafd", prefix: "10.1.1.0/27", gateway: "10.1.1.1" },
          isBehindFirewall: true,
          rules: [
            ...(deny ? [rule(100, "Deny", deny)] : []),
            ...[rule(200, "Allow", "VirtualNetwork"), rule(300, "Allow", "198.18.0.0/24")],
          ],
        },
      ],
      balanced: [
        {
          ...{ address: frontend, port: 80, protocol: "Tcp", backendPort: 80 },
          ...{ isFloating, isInternal: true, backends: both },
        },
      ],
      ...{ destinations: ["10.1.1.0/27"], names: {} },
    };
  };
  const frontend = "http://10.1.1.29/";

  const world = new MachinesInNetwork();
  beforeAll(async () => {
    await world.shape(network());
    for (const address of both) await world.add(network(), address, service);
  });
  afterAll(() => world.remove());

  it("leads whoever asks it to a healthy machine, also one beside it in the same subnet", async () => {
    await world.follow(network(), both);
    const said = new Set<string>();
    const operator = ["--interface", operatorAddress];
    for (let time = 0; time < 12; time += 1)
      said.add(await world.ask(world.namespaces.internet, frontend, ...operator));
    expect([...said].sort()).toEqual(both.map((address) => `${address} ${operatorAddress}`));

    await world.follow(network(), [second]);
    expect(await world.ask(first, frontend)).toBe(`${second} ${first}`);
  });

  it.each([false, true])(
    "gives a machine no answer by way of itself, and nobody one while none is healthy (floating IP: %s)",
    async (isFloating) => {
      const url = isFloating ? `http://${service}:80/` : frontend;
      await world.follow(network({ isFloating }), [first]);
      // A machine has a floating address itself, so that what it asks of it never leaves it.
      if (!isFloating) await expect(world.ask(first, url)).rejects.toThrow("timed out");
      expect(await world.ask(world.namespaces.internet, url, "--interface", operatorAddress)).toBe(
        `${first} ${operatorAddress}`,
      );

      await world.follow(network({ isFloating }), []);
      await expect(
        world.ask(world.namespaces.internet, url, "--interface", operatorAddress),
      ).rejects.toThrow("timed out");
    },
  );

  it("leads machines of one subnet to each other as far as the security group lets them", async () => {
    await world.follow(network(), both);
    expect(await world.ask(first, `http://${second}/`)).toBe(`${second} ${first}`);

    await world.follow(network({ deny: first }), both);
    await expect(world.ask(first, `http://${second}/`)).rejects.toThrow("timed out");
    expect(await world.ask(second, `http://${first}/`)).toBe(`${first} ${second}`);
  });

  it("has no way out but to the firewall's proxy", async () => {
    await world.follow(network(), both);

    await expect(world.ask(first, "http://198.18.4.1:3128/")).rejects.toThrow("Couldn't connect");
    for (const elsewhere of ["198.18.4.1", "198.18.1.1"])
      await expect(world.ask(first, `http://${elsewhere}/`)).rejects.toThrow("timed out");
  });
});
