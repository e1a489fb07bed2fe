import { createHash } from "node:crypto";

import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import {
  azureJson,
  AzureJsonArgs,
  CloudConfig,
} from "../../../../components/add-ons/cloud-provider/cloud-config";
import { CloudControllerManager } from "../../../../components/add-ons/cloud-provider/cloud-controller-manager";
import { CloudNodeManager } from "../../../../components/add-ons/cloud-provider/cloud-node-manager";
import type { ServiceAccountLogin } from "../../../../components/add-ons/workload-identity";
import type { ExistingNetwork } from "../../../../components/azure/existing-network";
import { Certificates } from "../../../../components/certificates";
import { minors } from "../../../../components/versions";
import { dependenciesOf, Recorder, revealed, valueOf } from "../../../support/record";
import { firstKeys, validSettings } from "../../../support/sample";

describe("azure.json", () => {
  const args: AzureJsonArgs = {
    tenantId: "tenant",
    subscriptionId: "subscription",
    resourceGroup: "shop",
    location: "westeurope",
    virtualNetwork: { name: "shop-vnet", resourceGroup: "shop" },
    subnet: "nodes-1",
    securityGroup: { name: "shop-nsg", resourceGroup: "shop" },
    routeTable: { name: "shop-rt", resourceGroup: "shop" },
    clientId: "client",
    resourceManagerEndpoint: "https://management.azure.com",
    tags: {},
  };

  const elsewhere = { name: "spoke", resourceGroup: "network" };
  const tags = { owner: "a,b=c" };
  const endpoint = (resourceManagerEndpoint: string) => ({ resourceManagerEndpoint });
  it.each<[string, Partial<AzureJsonArgs>, object, string[]?]>([
    [
      "looks for stand-alone machines, since the default looks for scale sets",
      {},
      { vmType: "standard" },
      ["disableAvailabilitySetNodes"],
    ],
    [
      "names the cluster's own network, firewall and routes, each with its group",
      {},
      {
        ...{ tenantId: "tenant", subscriptionId: "subscription", resourceGroup: "shop" },
        ...{ location: "westeurope", vnetName: "shop-vnet", vnetResourceGroup: "shop" },
        ...{ subnetName: "nodes-1", securityGroupName: "shop-nsg" },
        ...{ securityGroupResourceGroup: "shop", routeTableName: "shop-rt" },
        routeTableResourceGroup: "shop",
      },
    ],
    [
      "names a network of others by its own groups, and no routes where it has none",
      {
        virtualNetwork: elsewhere,
        securityGroup: { ...elsewhere, name: "guard" },
        routeTable: undefined,
      },
      {
        ...{ resourceGroup: "shop", vnetName: "spoke", vnetResourceGroup: "network" },
        ...{ securityGroupName: "guard", securityGroupResourceGroup: "network" },
      },
      ["routeTableName", "routeTableResourceGroup"],
    ],
    [
      "puts addresses and not network interfaces into balancers, and gives no egress",
      {},
      {
        loadBalancerSku: "standard",
        loadBalancerBackendPoolConfigurationType: "nodeIP",
        excludeMasterFromStandardLB: true,
        disableOutboundSNAT: true,
        maximumLoadBalancerRuleCount: 250,
      },
    ],
    [
      "leaves the balancer's name to the provider, so that it never adopts another",
      {},
      {},
      ["loadBalancerName"],
    ],
    [
      "waits and tries again when Azure is busy, and refuses nothing by itself",
      {},
      { cloudProviderBackoff: true, cloudProviderBackoffRetries: 6 },
      ["cloudProviderRateLimit"],
    ],
    [
      "keeps the node of a machine that Azure does not list yet",
      {},
      { nodeInstanceNotFoundGracePeriodInSeconds: 300 },
    ],
    [
      "signs in as the managed identity, by its client id",
      {},
      {
        useManagedIdentityExtension: true,
        userAssignedIdentityID: "client",
        useInstanceMetadata: true,
      },
      ["aadClientId"],
    ],
    [
      "signs in as a service principal when there is a secret",
      { clientSecret: "secret" },
      { useManagedIdentityExtension: false, aadClientId: "client", aadClientSecret: "secret" },
      ["userAssignedIdentityID"],
    ],
    ...[
      ["https://management.azure.com", "AzurePublicCloud"],
      ["https://management.azure.com/", "AzurePublicCloud"],
      ["https://management.usgovcloudapi.net", "AzureUSGovernmentCloud"],
      ["https://management.chinacloudapi.cn", "AzureChinaCloud"],
    ].map(([address, cloud]): [string, Partial<AzureJsonArgs>, object, string[]] => [
      `knows ${address} by name`,
      endpoint(address!),
      { cloud },
      ["resourceManagerEndpoint"],
    ]),
    [
      "gives the endpoint of any other cloud, and no name that it may not be listed by",
      endpoint("http://localhost:9/"),
      endpoint("http://localhost:9"),
      ["cloud"],
    ],
    [
      "has the cloud provider tag what it makes, and take away no other's tag",
      { tags },
      { tagsMap: tags },
      ["systemTags"],
    ],
    ["has it tag nothing where there are no tags", {}, {}, ["tagsMap"]],
  ])("%s", (_, change, has, lacks = []) => {
    const written = JSON.parse(azureJson({ ...args, ...change }));

    expect(written).toMatchObject(has);
    for (const name of lacks) expect(written).not.toHaveProperty(name);
  });
});

const apiServer = { name: "api.example", port: 6443 };

async function build(
  change: Partial<typeof validSettings> = {},
  clientSecret?: pulumi.Output<string>,
  login?: ServiceAccountLogin,
  existingNetwork?: ExistingNetwork,
) {
  const recorder = await Recorder.start();
  const resourceGroup = new ResourceGroup("cluster", { resourceGroupName: "zoned-test" });
  const settings = { ...validSettings, ...change };
  const opts = { transformations: [recorder.watch] };
  const cloudConfig = new CloudConfig(
    "cloud-config",
    {
      resourceGroup,
      settings,
      existingNetwork,
      tenantId: "tenant",
      subscriptionId: "subscription",
      credential: { clientId: pulumi.output("client"), clientSecret },
      certificates: new Certificates("pki", firstKeys),
    },
    opts,
  );
  const args = { settings, apiServer, cloudConfig, login };
  new CloudControllerManager("cloud-controller-manager", args, opts);
  new CloudNodeManager("cloud-node-manager", args, opts);
  return { recorder, cloudConfig };
}

const controller = async (recorder: Recorder) =>
  (await recorder.object("Deployment", "cloud-controller-manager")).inputs;
const node = async (recorder: Recorder) =>
  (await recorder.object("DaemonSet", "cloud-node-manager")).inputs;

const podOf = async (...change: Parameters<typeof build>) =>
  (await controller((await build(...change)).recorder)).spec.template.spec;

/** What is in the Secret. */
const configIn = async (recorder: Recorder) => {
  const { inputs } = await recorder.object("Secret", "azure-cloud-provider");
  expect(inputs.metadata.namespace).toBe("kube-system");
  return Buffer.from(revealed(inputs.data)["cloud-config"], "base64").toString();
};

describe("CloudConfig", () => {
  it("carries the settings' own names and the credential", async () => {
    const { recorder } = await build({}, pulumi.secret("hush"));

    expect(JSON.parse(await configIn(recorder))).toMatchObject({
      tenantId: "tenant",
      subscriptionId: "subscription",
      resourceGroup: "zoned-test",
      location: "westeurope",
      vnetName: "zoned-test-vnet",
      // Not the machines' own: a balancer would take the next one's address.
      subnetName: "internal-balancers",
      securityGroupName: "zoned-test-nsg",
      aadClientId: "client",
      aadClientSecret: "hush",
    });
  });

  it("has the stack's own tag put on no security group of others", async () => {
    const there = "/subscriptions/1/resourceGroups/network/providers/Microsoft.Network";
    const subnet = { name: "nodes", securityGroup: `${there}/networkSecurityGroups/guard` };
    const spoke = {
      id: `${there}/virtualNetworks/spoke`,
      subnets: new Map([["nodes", subnet]]),
    } as unknown as ExistingNetwork;
    const change = {
      ...{ resourceGroup: "platform", nodeSubnets: ["nodes"] },
      tags: { costCenter: "4711" },
    };
    const tagsIn = async (network?: ExistingNetwork) => {
      const { recorder } = await build(change, undefined, undefined, network);
      return Object.keys((JSON.parse(await configIn(recorder)) as { tagsMap: object }).tagsMap);
    };

    expect(await tagsIn()).toEqual(["costCenter", "zoned-stack"]);
    expect(await tagsIn(spoke)).toEqual(["costCenter"]);
  });

  it("has internal balancers in the first subnet that the settings name, whichever Azure names first", async () => {
    const inNetwork = (path: string) =>
      `/subscriptions/subscription/resourceGroups/network/providers/Microsoft.Network/${path}`;
    const subnets = ["a", "b", "c"].map((name) => ({
      ...{ id: inNetwork(`virtualNetworks/spoke/subnets/${name}`), name, ranges: [], free: 100 },
      ...{ delegations: [], permissions: [], routeTable: inNetwork(`routeTables/of-${name}`) },
      securityGroup: inNetwork("networkSecurityGroups/guard"),
    }));
    const nodeSubnets = ["C", "a", "b"].map((name) =>
      inNetwork(`virtualNetworks/spoke/subnets/${name}`),
    );
    const { recorder } = await build({ nodeSubnets }, undefined, undefined, {
      ...{ id: inNetwork("virtualNetworks/spoke"), location: "westeurope", ranges: [] },
      ...{ dnsServers: [], permissions: [], unreadable: [] },
      ...{ rules: new Map(), routes: new Map(), egress: new Map(), groupTags: new Map() },
      subnets: new Map(subnets.map((one) => [one.id.toLowerCase(), one])),
    });

    expect(JSON.parse(await configIn(recorder))).toMatchObject({
      ...{ vnetName: "spoke", vnetResourceGroup: "network", securityGroupName: "guard" },
      ...{ subnetName: "c", routeTableName: "of-c" },
    });
  });

  const proxied = (https: string, ca = "") => ({
    httpProxy: { http: "", https, noProxy: [], ca },
  });
  const login = (password: string) => `http://me:${password}@proxy.example:3128`;
  const secret = (text: string): Parameters<typeof build> => [{}, pulumi.secret(text)];
  // The pods that have it, of which nobody but they can tell what it is.
  it.each<[string, Parameters<typeof build>, Parameters<typeof build>]>([
    ["another secret", secret("hush"), secret("hushed")],
    // Which pods read from the host, once.
    ["another CA of the proxy", [proxied("http://p:1", "one")], [proxied("http://p:1", "other")]],
    ["another password of the proxy", [proxied(login("hush"))], [proxied(login("hushed"))]],
  ])("starts what reads it anew for %s, and for nothing else", async (_, one, other) => {
    const digests = [];
    for (const change of [one, one, other]) {
      const { cloudConfig, recorder } = await build(...change);
      digests.push(await valueOf(cloudConfig.digest));
      expect(await pulumi.isSecret(cloudConfig.digest)).toBe(false);
      const https = change[0]?.httpProxy?.https ?? "";
      // A password that somebody has chosen could be tried.
      const tried = createHash("sha256").update((await configIn(recorder)) + https);
      if (https.includes("@")) expect(digests.at(-1)).not.toBe(tried.digest("hex"));
    }

    expect(digests[0]).toBe(digests[1]);
    expect(digests[0]).not.toBe(digests[2]);
    expect(digests[0]).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe("CloudControllerManager", () => {
  it("runs only where the identity is, also before the machines are initialized", async () => {
    const { nodeSelector, tolerations } = await podOf();

    expect(nodeSelector).toHaveProperty(["node-role.kubernetes.io/control-plane"], "");
    for (const key of [
      "node-role.kubernetes.io/control-plane",
      "node.cloudprovider.kubernetes.io/uninitialized",
      "node.kubernetes.io/not-ready",
    ]) {
      expect(tolerations).toContainEqual({ key, operator: "Exists", effect: "NoSchedule" });
    }
  });

  it.each([
    { controlPlaneCount: 1, replicas: 1 },
    { controlPlaneCount: 3, replicas: 2 },
    { controlPlaneCount: 5, replicas: 2 },
  ])(
    "has $replicas of itself on $controlPlaneCount control planes",
    async ({ controlPlaneCount, replicas }) => {
      const { recorder } = await build({ controlPlaneCount });

      const { spec } = await controller(recorder);
      expect(spec.replicas).toBe(replicas);
      // Two would fight for the ports of one machine.
      expect(
        spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution,
      ).toEqual([{ labelSelector: spec.selector, topologyKey: "kubernetes.io/hostname" }]);
    },
  );

  it("counts as ready when it has run for longer than it takes to find that it has no rights yet", async () => {
    const [container] = (await podOf()).containers;

    // A leader's lease, for which it waits when it begins again, lasts 15 s.
    expect(container.readinessProbe).toMatchObject({
      httpGet: { host: "127.0.0.1", path: "/healthz", port: 10268, scheme: "HTTPS" },
      initialDelaySeconds: 30,
    });
  });

  it("can read azure.json as whatever user its image runs", async () => {
    expect((await podOf()).volumes).toContainEqual({
      name: "cloud-config",
      secret: { secretName: "azure-cloud-provider", defaultMode: 0o444 },
    });
  });

  it("trusts whom its machine trusts: it has the folder of authorities where the machine has it", async () => {
    const { volumes, containers } = await podOf();

    const of = ({ name }: { readonly name: string }) => name === "certificates";
    const places = [volumes.find(of).hostPath.path, containers[0].volumeMounts.find(of).mountPath];
    expect(places).toEqual(["/etc/ssl", "/etc/ssl"]);
  });

  it("may do what upstream's does, but for reading Secrets", async () => {
    const { recorder } = await build();

    const { inputs } = await recorder.object("ClusterRole", "cloud-controller-manager");

    expect(inputs.rules).toEqual([
      { apiGroups: [""], resources: ["events"], verbs: ["create", "patch", "update"] },
      { apiGroups: [""], resources: ["nodes"], verbs: ["*"] },
      { apiGroups: [""], resources: ["nodes/status"], verbs: ["patch"] },
      {
        apiGroups: [""],
        resources: ["services", "services/status"],
        verbs: ["list", "patch", "update", "watch"],
      },
      {
        apiGroups: [""],
        resources: ["serviceaccounts", "endpoints"],
        verbs: ["create", "get", "list", "update", "watch"],
      },
      {
        apiGroups: [""],
        resources: ["persistentvolumes"],
        verbs: ["get", "list", "update", "watch"],
      },
      {
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        verbs: ["create", "get", "update"],
      },
      {
        apiGroups: ["discovery.k8s.io"],
        resources: ["endpointslices"],
        verbs: ["get", "list", "watch"],
      },
    ]);
  });

  it("never needs more machines than there are to be rolled out", async () => {
    const { recorder } = await build();

    const { spec } = await controller(recorder);

    expect(spec.strategy.rollingUpdate).toEqual({ maxSurge: 0, maxUnavailable: 1 });
    expect(spec.template.spec.hostNetwork).toBe(true);
  });

  it("leaves pod ranges and routes alone, and nodes to the node manager", async () => {
    const [{ args }] = (await podOf({ podCidr: "10.9.0.0/16" })).containers;

    for (const flag of [
      "--cloud-provider=azure",
      "--cluster-name=zoned-test",
      "--cluster-cidr=10.9.0.0/16",
      "--controllers=*,-cloud-node",
      "--allocate-node-cidrs=false",
      "--configure-cloud-routes=false",
      "--leader-elect=true",
      // It has nothing to say to other machines.
      "--bind-address=127.0.0.1",
    ]) {
      expect(args).toContain(flag);
    }
  });

  it("reads azure.json from the Secret's volume, which is there before it", async () => {
    const { recorder, cloudConfig } = await build();

    const deployment = await recorder.object("Deployment", "cloud-controller-manager");

    const { containers, volumes } = deployment.inputs.spec.template.spec;
    const volume = volumes.find(({ secret }: any) => secret?.secretName === "azure-cloud-provider");
    const mount = containers[0].volumeMounts.find(({ name }: any) => name === volume.name);
    expect(containers[0].args).toContain(`--cloud-config=${mount.mountPath}/cloud-config`);
    expect(await dependenciesOf(deployment)).toContain(cloudConfig);
  });

  it("starts again when azure.json changes", async () => {
    const { recorder, cloudConfig } = await build();

    const { annotations } = (await controller(recorder)).spec.template.metadata;

    expect(annotations["zoned/cloud-config"]).toBe(await valueOf(cloudConfig.digest));
  });

  it("has its service account's token for Entra, and who it is there, where it logs in by it, and else neither", async () => {
    const login = {
      ...{ tenantId: "the-tenant", clientId: "the-client" },
      resourceManagerEndpoint: "https://management.azure.com",
    };
    const [pod, plain] = [await podOf({}, undefined, login), await podOf()];
    const {
      containers: [{ env, volumeMounts }],
      volumes,
    } = pod;

    const valueIn = (name: string) =>
      env.find((one: { name: string }) => one.name === name)?.value as string;
    const mount = volumeMounts.find(({ mountPath }: { mountPath: string }) =>
      valueIn("AZURE_FEDERATED_TOKEN_FILE").startsWith(mountPath),
    );
    const volume = volumes.find(({ name }: { name: string }) => name === mount.name);
    expect([valueIn("AZURE_CLIENT_ID"), valueIn("AZURE_TENANT_ID")]).toEqual([
      ...["the-client", "the-tenant"],
    ]);
    expect(volume.projected.sources[0].serviceAccountToken).toMatchObject({
      audience: "api://AzureADTokenExchange",
      path: valueIn("AZURE_FEDERATED_TOKEN_FILE").slice(mount.mountPath.length + 1),
    });
    expect(JSON.stringify(plain)).not.toMatch(/AZURE_|serviceAccountToken/);
  });
});

describe("CloudNodeManager", () => {
  it("runs on every machine, whatever its taints, and asks the machine itself", async () => {
    const { recorder } = await build();

    const { spec } = (await node(recorder)).spec.template;

    expect(spec.hostNetwork).toBe(true);
    expect(spec.tolerations).toEqual([{ operator: "Exists" }]);
    expect(spec.containers[0].args).toEqual(
      expect.arrayContaining([
        "--node-name=$(NODE_NAME)",
        "--use-instance-metadata=true",
        "--wait-routes=false",
      ]),
    );
  });

  it("may write what it knows of machines, and nothing else", async () => {
    const { recorder } = await build();

    const { inputs } = await recorder.object("ClusterRole", "cloud-node-manager");

    expect(inputs.rules).toEqual([
      { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "patch", "update", "watch"] },
      { apiGroups: [""], resources: ["nodes/status"], verbs: ["patch"] },
    ]);
  });
});

describe("the cloud provider", () => {
  it("reaches the API by its name, so that kube-proxy and it need not wait for each other", async () => {
    const { recorder } = await build();

    for (const { spec } of [await controller(recorder), await node(recorder)]) {
      expect(spec.template.spec.containers[0].env).toEqual(
        expect.arrayContaining([
          { name: "KUBERNETES_SERVICE_HOST", value: "api.example" },
          { name: "KUBERNETES_SERVICE_PORT", value: "6443" },
        ]),
      );
    }
  });

  it.each(minors)("runs in the version of the cluster's own minor, $minor", async ({ minor }) => {
    const { recorder } = await build({ kubernetesVersion: `${minor}.1` });

    for (const { spec } of [await controller(recorder), await node(recorder)]) {
      const [image, version] = spec.template.spec.containers[0].image.split(":");
      expect(image).toMatch(/^mcr\.microsoft\.com\/oss\/v2\/kubernetes\/azure-cloud-/);
      expect(version).toMatch(new RegExp(`^v${minor.replace(".", "\\.")}\\.\\d+$`));
    }
  });

  it("reaches Azure through the proxy, and the API without", async () => {
    const httpProxy = { http: "", https: "http://proxy.example:3128", noProxy: [], ca: "" };
    const [container] = (await podOf({ httpProxy })).containers;

    expect(container.env).toContainEqual({ name: "HTTPS_PROXY", value: httpProxy.https });
    expect(container.env).toContainEqual({
      name: "NO_PROXY",
      value: expect.stringMatching(/,api\.example$/),
    });
  });

  it("has a proxy's password in the Secret alone, where its Pulumi resource hides it", async () => {
    const { recorder } = await build({
      httpProxy: {
        ...{ http: "http://proxy.example:3128", https: "http://me:hush@proxy.example:3128" },
        ...{ noProxy: [], ca: "" },
      },
    });

    const pod = await controller(recorder);
    const { inputs } = await recorder.object("Secret", "azure-cloud-provider");

    expect(JSON.stringify(pod)).not.toContain("hush");
    expect(pod.spec.template.spec.containers[0].env).toEqual(
      expect.arrayContaining([
        { name: "HTTP_PROXY", value: "http://proxy.example:3128" },
        {
          name: "HTTPS_PROXY",
          valueFrom: { secretKeyRef: { name: "azure-cloud-provider", key: "HTTPS_PROXY" } },
        },
      ]),
    );
    expect(inputs.data).toHaveProperty(
      [pulumi.runtime.specialSigKey],
      pulumi.runtime.specialSecretSig,
    );
    const { HTTP_PROXY, HTTPS_PROXY } = revealed(inputs.data);
    expect(HTTP_PROXY).toBeUndefined();
    expect(Buffer.from(HTTPS_PROXY, "base64").toString()).toBe("http://me:hush@proxy.example:3128");
  });
});
