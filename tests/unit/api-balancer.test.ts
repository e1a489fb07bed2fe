import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import { ApiBalancer, type ApiBalancerArgs, balancerDigest } from "../../components/api-balancer";
import { dnsLabel } from "../../components/azure/resource-names";
import { apiName } from "../../components/api-server";
import { kubeadmFiles } from "../../components/kubeadm/kubeadm";
import { Settings } from "../../components/settings/settings";
import { networkIds, Recorder, valueOf } from "../support/record";
import { machine, specOf, subscriptionId, validSettings } from "../support/sample";

const groupId = `/subscriptions/${subscriptionId}/resourceGroups/zoned-test`;
const balancerId = `${groupId}/providers/Microsoft.Network/loadBalancers/zoned-test-api`;
const publicIp = "azure-native:network:PublicIPAddress";
const loadBalancer = "azure-native:network:LoadBalancer";

const build = async (change: Partial<Settings> = {}, previous?: ApiBalancerArgs["previous"]) => {
  const recorder = await Recorder.start();
  const own = new ResourceGroup("cluster", {}, { import: groupId });
  const resourceGroup = { name: own.name, id: own.id, own };
  const api = new ApiBalancer(
    "api",
    {
      resourceGroup,
      settings: { ...validSettings, ...change },
      subscriptionId,
      network: networkIds,
      apiAddress: change.apiAccess === "private" ? "10.1.1.30" : undefined,
      previous,
      shown: new Map(),
    },
    { transformations: [recorder.watch] },
  );
  return { recorder, resourceGroup, api };
};

it.each([{ zones: ["1", "2", "3"] }, { zones: ["2", "3"] }])(
  "keeps its address in all of $zones",
  async ({ zones }) => {
    const { recorder } = await build({ zones });

    const { inputs } = await recorder.only(publicIp);

    expect(inputs).toMatchObject({
      zones,
      sku: { name: "Standard" },
      publicIPAllocationMethod: "Static",
    });
  },
);

it("has in Azure the name that machines and kubeconfigs call it by", async () => {
  const { recorder } = await build();

  const { inputs } = await recorder.only(publicIp);

  expect(apiName(validSettings, subscriptionId)).toBe(
    `${inputs.dnsSettings.domainNameLabel}.westeurope.cloudapp.azure.com`,
  );
});

it("is called the same for ever", () => {
  // Certificates, kubeconfigs and machines that live carry this very name.
  expect(dnsLabel("zoned-test", subscriptionId)).toBe("zoned-test-e708c06c");
  expect(dnsLabel("zoned-test", subscriptionId.toUpperCase())).toBe("zoned-test-e708c06c");
});

it("is called otherwise in another subscription, and for another cluster", () => {
  const labels = [
    dnsLabel("zoned-test", subscriptionId),
    dnsLabel("zoned-test", "00000000-0000-0000-0000-000000000000"),
    dnsLabel("zoned-prod", subscriptionId),
  ];

  expect(new Set(labels.map((label) => label.split("-").pop())).size).toBe(3);
  for (const label of labels) expect(label).toMatch(/^[a-z][a-z0-9-]{1,61}[a-z0-9]$/);
});

it("does not bear the cluster's name, by which the cloud provider would adopt it", async () => {
  const { recorder } = await build();

  const { inputs } = await recorder.only(loadBalancer);

  expect(inputs).toMatchObject({ loadBalancerName: "zoned-test-api", sku: { name: "Standard" } });
});

it("counts a machine in only once its API server is ready, and out within ten seconds", async () => {
  const { recorder } = await build();

  const { inputs } = await recorder.only(loadBalancer);

  expect(inputs.probes).toEqual([
    expect.objectContaining({
      name: "readyz",
      protocol: "Https",
      port: 6443,
      requestPath: "/readyz",
      intervalInSeconds: 5,
      probeThreshold: 2,
    }),
  ]);
  expect(inputs.loadBalancingRules[0].probe).toEqual({ id: `${balancerId}/probes/readyz` });
});

it("sends the API's port from its address to the control plane, and gives no egress", async () => {
  const { recorder } = await build();

  const { inputs } = await recorder.only(loadBalancer);

  expect(inputs.frontendIPConfigurations).toEqual([
    { name: "api", publicIPAddress: { id: "/ids/api-ip" } },
  ]);
  expect(inputs.backendAddressPools).toEqual([{ name: "control-plane" }]);
  expect(inputs).not.toHaveProperty("outboundRules");
  expect(inputs.loadBalancingRules).toEqual([
    expect.objectContaining({
      protocol: "Tcp",
      frontendPort: 6443,
      backendPort: 6443,
      frontendIPConfiguration: { id: `${balancerId}/frontendIPConfigurations/api` },
      backendAddressPools: [{ id: `${balancerId}/backendAddressPools/control-plane` }],
      disableOutboundSnat: true,
      // Azure would forget a connection that is silent for four minutes.
      idleTimeoutInMinutes: 30,
      enableTcpReset: true,
    }),
  ]);
});

it.each([
  [
    "stays as the last update left it, leaves the machines that a refresh has seen in its pool alone",
    true,
  ],
  [
    "is another than the last update left, is sent without the machines that a refresh has seen",
    false,
  ],
])("a balancer that %s", async (_, isAsLeft) => {
  const { recorder } = await build({}, { balancer: isAsLeft ? balancerDigest() : "another" });

  const { opts } = await recorder.only(loadBalancer);

  const list = "backendAddressPools[0].loadBalancerBackendAddresses";
  expect(opts.ignoreChanges).toEqual(isAsLeft ? [list] : []);
});

it.each([
  ["https://management.azure.com/", "azure.com"],
  ["https://management.usgovcloudapi.net", "usgovcloudapi.net"],
  ["https://management.chinacloudapi.cn", "chinacloudapi.cn"],
  ["http://127.0.0.1:8123", "azure.com"],
])("is called by the domain of the cloud that answers at %s", (resourceManagerEndpoint, domain) => {
  expect(apiName({ ...validSettings, resourceManagerEndpoint }, subscriptionId)).toMatch(
    new RegExp(`^zoned-test-[0-9a-f]{8}\\.westeurope\\.cloudapp\\.${domain.replace(".", "\\.")}$`),
  );
});

it("names the pool that control plane machines join", async () => {
  const { api } = await build();

  expect(await valueOf(api.poolId)).toBe(`${balancerId}/backendAddressPools/control-plane`);
});

it.each([true, false])("is what protect (%s) keeps in a group of others", async (protect) => {
  const recorder = await Recorder.start();
  const settings = { ...validSettings, resourceGroup: "platform", protect };
  const resourceGroup = { name: pulumi.output("platform"), id: pulumi.output(groupId) };
  const args = { resourceGroup, settings, subscriptionId, network: networkIds, shown: new Map() };
  new ApiBalancer("api", args, { transformations: [recorder.watch] });

  const { opts } = await recorder.only(loadBalancer);

  expect(opts.protect).toBe(protect);
  expect(opts.deletedWith).toBeUndefined();
});

describe("a private API", () => {
  const settings = { apiAccess: "private", apiAccessCidrs: [] } as const;
  const zone = "zoned-test-e708c06c.internal";
  const dns = (name: string) => `azure-native:privatedns:${name}`;

  it("has an address of the network, in every zone by its own frontend, and no public one", async () => {
    const { recorder, api } = await build({ ...settings, zones: ["2", "3"] });

    const { inputs } = await recorder.only(loadBalancer);

    expect(inputs.sku).toEqual({ name: "Standard" });
    expect(inputs.frontendIPConfigurations).toEqual([
      {
        name: "api",
        subnet: { id: "/ids/internal-balancers" },
        privateIPAllocationMethod: "Static",
        privateIPAddress: "10.1.1.30",
        zones: ["2", "3"],
      },
    ]);
    expect(await recorder.of(publicIp)).toEqual([]);
    expect(await valueOf(api.address)).toBe("10.1.1.30");
  });

  it("is known to the network by the name that machines and kubeconfigs call it by", async () => {
    const { recorder, api } = await build(settings);

    const { inputs: record } = await recorder.only(dns("PrivateRecordSet"));
    const { inputs: link } = await recorder.only(dns("VirtualNetworkLink"));

    expect((await recorder.only(dns("PrivateZone"))).inputs).toMatchObject({
      privateZoneName: zone,
      location: "global",
    });
    expect(record).toMatchObject({ recordType: "A", aRecords: [{ ipv4Address: "10.1.1.30" }] });
    // A cluster that is made anew has another address.
    expect(record.ttl).toBeLessThanOrEqual(3600);
    expect(apiName({ ...validSettings, ...settings }, subscriptionId)).toBe(
      `${record.relativeRecordSetName}.${zone}`,
    );
    expect(link).toMatchObject({
      location: "global",
      virtualNetwork: { id: "/ids/vnet" },
      registrationEnabled: false,
    });
    // What needs the address waits for both.
    const { allResources } = api.address as unknown as {
      readonly allResources: () => Promise<Set<pulumi.Resource>>;
    };
    const awaited = [...(await allResources())].map((one) => one.constructor.name);
    expect(awaited).toEqual(["VirtualNetworkLink", "PrivateRecordSet"]);
  });

  it("has the name that somebody else keeps in DNS, and no zone then", async () => {
    const named = { ...settings, apiName: "api.zoned.example" };
    const { recorder } = await build(named);

    const all = await recorder.all();

    expect(all.filter(({ type }) => type.includes("privatedns"))).toEqual([]);
    expect(apiName({ ...validSettings, ...named }, subscriptionId)).toBe("api.zoned.example");
  });

  it("is gone when the resource group is gone, without a delete of its own", async () => {
    const { recorder, resourceGroup } = await build(settings);

    const parts = (await recorder.all()).filter(({ type }) => type.startsWith("azure-native:"));
    const own = parts.filter(({ type }) => !type.endsWith(":ResourceGroup"));

    expect(own).toHaveLength(4);
    expect(own.filter(({ opts }) => opts.deletedWith !== resourceGroup.own)).toEqual([]);
  });
});

it("loses an API server, which answers on, before that ends; where there are others", async () => {
  const delay = (controlPlaneCount: number, own: Record<string, string> = {}) => {
    const kubeadm = { ...validSettings.kubeadm, apiServerExtraArgs: own };
    const settings = { ...validSettings, controlPlaneCount, kubeadm };
    const text = kubeadmFiles(specOf(settings), machine).map(({ content }) => content);
    return /name: shutdown-delay-duration\n +value: "?(\w+)"?\n/.exec(text.join(""))?.[1];
  };
  const { recorder } = await build();
  const [{ intervalInSeconds, probeThreshold }] = (await recorder.only(loadBalancer)).inputs.probes;

  expect(delay(3)).toMatch(/^\d+s$/);
  expect(parseInt(delay(3)!)).toBeGreaterThan(intervalInSeconds * probeThreshold);
  // The kubelet grants a static pod 30 s, in which requests have to end, too.
  expect(parseInt(delay(3)!)).toBeLessThanOrEqual(20);
  expect(delay(1)).toBeUndefined();
  expect(delay(3, { "shutdown-delay-duration": "0s" })).toBe("0s");
});
