import type {
  AzureDisk,
  AzureResources,
  BackendPool,
  LoadBalancer,
  NetworkInterface,
  VirtualMachine,
} from "../../picture/azure";
import type { ClusterAnswer, ClusterObjects } from "../../picture/cluster";
import type { Seen } from "../../picture/model";

const group = "/subscriptions/5ca1ab1e/resourceGroups/zoned-prod";
const network = (path: string) => `${group}/providers/Microsoft.Network/${path}`;
const compute = (path: string) => `${group}/providers/Microsoft.Compute/${path}`;

export interface FakeMachine {
  readonly name: string;
  readonly role: "control-plane" | "worker";
  readonly zone: string;
  readonly address: string;
}

const machine = (name: string, index: number): FakeMachine => {
  const isControlPlane = name.startsWith("cp");
  const zone = String((index % 3) + 1);
  return {
    name: `zoned-prod-${name}`,
    role: isControlPlane ? "control-plane" : "worker",
    zone,
    address: `172.16.${zone}.${(isControlPlane ? 4 : 16) + Math.floor(index / 3)}`,
  };
};

/** Three control planes, and so many workers over the zones. */
export const machinesWith = (workers: number): FakeMachine[] => [
  ...[1, 2, 3].map((number) => machine(`cp-${number}`, number - 1)),
  ...Array.from({ length: workers }, (_, index) => machine(`workers-${index + 1}`, index)),
];

const vmOf = ({ name, role, zone }: FakeMachine): VirtualMachine => ({
  id: compute(`virtualMachines/${name}`),
  ...{ name, zones: [zone], power: "running", provisioningState: "Succeeded" },
  size: role === "worker" ? "Standard_D4s_v5" : "Standard_D2s_v5",
  osDisk: {
    name: `${name}_OsDisk_1`,
    diskSizeGB: 64,
    managedDisk: { id: compute(`disks/${name}_OsDisk_1`), storageAccountType: "Premium_LRS" },
  },
  dataDisks: [],
});

const apiPool = network("loadBalancers/zoned-prod-api/backendAddressPools/control-plane");

const interfaceOf = ({ name, role, address }: FakeMachine): NetworkInterface => ({
  id: network(`networkInterfaces/${name}-nic`),
  name: `${name}-nic`,
  properties: {
    // Azure writes ids as it likes.
    virtualMachine: { id: compute(`virtualMachines/${name}`).toUpperCase() },
    ipConfigurations: [
      {
        id: network(`networkInterfaces/${name}-nic/ipConfigurations/node`),
        name: "node",
        properties: {
          privateIPAddress: address,
          loadBalancerBackendAddressPools: role === "control-plane" ? [{ id: apiPool }] : [],
        },
      },
    ],
  },
});

interface FakeRule {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly isFloating?: boolean;
}

interface FakeBalancer {
  readonly name: string;
  readonly rules: readonly FakeRule[];
  readonly pool: Omit<BackendPool, "id">;
  readonly probe: { readonly protocol: string; readonly port: number; requestPath?: string };
}

/** A balancer with a frontend and a public address for each rule. */
function balancerOf({ name, rules, pool, probe }: FakeBalancer): LoadBalancer {
  const id = (part: string) => network(`loadBalancers/${name}/${part}`);
  return {
    id: network(`loadBalancers/${name}`),
    name,
    properties: {
      frontendIPConfigurations: rules.map((rule) => ({
        id: id(`frontendIPConfigurations/${rule.name}`),
        name: rule.name,
        properties: { publicIPAddress: { id: network(`publicIPAddresses/${rule.name}`) } },
      })),
      loadBalancingRules: rules.map((rule) => ({
        id: id(`loadBalancingRules/${rule.name}-TCP-${rule.port}`),
        name: `${rule.name}-TCP-${rule.port}`,
        properties: {
          protocol: "Tcp",
          frontendPort: rule.port,
          backendPort: rule.port,
          enableFloatingIP: rule.isFloating,
          frontendIPConfiguration: { id: id(`frontendIPConfigurations/${rule.name}`) },
          backendAddressPools: [{ id: id(`backendAddressPools/${pool.name}`) }],
          probe: { id: id("probes/probe") },
        },
      })),
      probes: [{ id: id("probes/probe"), name: "probe", properties: probe }],
      backendAddressPools: [{ ...pool, id: id(`backendAddressPools/${pool.name}`) }],
    },
  };
}

const addressOf = (name: string, ipAddress: string, ...zones: string[]) => ({
  id: network(`publicIPAddresses/${name}`),
  ...{ name, zones, properties: { ipAddress } },
});

const egress = (zone: string) => ({
  id: network(`natGateways/zoned-prod-egress-${zone}`),
  name: `zoned-prod-egress-${zone}`,
  zones: [zone],
  properties: {
    publicIpAddresses: [{ id: network(`publicIPAddresses/zoned-prod-egress-${zone}`) }],
  },
});

const nodeOf = ({ name }: FakeMachine): ClusterObjects["nodes"][number] => ({
  metadata: { name },
  status: {
    conditions: [{ type: "Ready", status: "True" }],
    nodeInfo: { systemUUID: name, kubeletVersion: "v1.36.3" },
  },
});

/** What a test may change. */
type Changeable<T> = T extends object ? { -readonly [K in keyof T]: Changeable<T[K]> } : T;

export interface FakeSeen {
  stack: string;
  azure: Changeable<AzureResources>;
  cluster: Changeable<ClusterAnswer> & { objects: Changeable<ClusterObjects> };
}

/** A stack whose machines are all well. */
export function healthy(workers = 3): FakeSeen {
  const machines = machinesWith(workers);
  const seen: Seen & { cluster: { objects: ClusterObjects } } = {
    stack: "prod",
    azure: {
      ...{ group: "zoned-prod", region: "southeastasia" },
      machines: machines.map(vmOf),
      interfaces: machines.map(interfaceOf),
      networks: [
        {
          id: network("virtualNetworks/zoned-prod-vnet"),
          name: "zoned-prod-vnet",
          properties: {
            addressSpace: { addressPrefixes: ["172.16.0.0/16"] },
            subnets: [
              ...["1", "2", "3"].map((zone) => ({
                id: network(`virtualNetworks/zoned-prod-vnet/subnets/nodes-${zone}`),
                name: `nodes-${zone}`,
                properties: {
                  addressPrefix: `172.16.${zone}.0/24`,
                  natGateway: { id: network(`natGateways/zoned-prod-egress-${zone}`) },
                },
              })),
              {
                id: network("virtualNetworks/zoned-prod-vnet/subnets/internal-balancers"),
                name: "internal-balancers",
                properties: { addressPrefix: "172.16.0.0/24" },
              },
            ],
          },
        },
      ],
      gateways: ["1", "2", "3"].map(egress),
      addresses: [
        addressOf("api", "203.0.113.2", "1", "2", "3"),
        ...["1", "2", "3"].map((zone) =>
          addressOf(`zoned-prod-egress-${zone}`, `203.0.113.1${zone}`, zone),
        ),
      ],
      balancers: [
        balancerOf({
          name: "zoned-prod-api",
          rules: [{ name: "api", address: "203.0.113.2", port: 6443 }],
          pool: { name: "control-plane", properties: {} },
          probe: { protocol: "Https", port: 6443, requestPath: "/readyz" },
        }),
      ],
      disks: machines.map((one) => osDiskOf(one)),
    },
    cluster: {
      report: {
        server: "https://api.example.com:6443",
        time: "2026-11-26T22:15:00.000Z",
        looked: true,
        healthy: true,
        checks: [],
        machines: machines.map(({ name, role, zone }) => ({
          ...{ name, role },
          zone: `southeastasia-${zone}`,
        })),
      },
      objects: { nodes: machines.map(nodeOf), volumes: [], services: [] },
    },
  };
  return seen as FakeSeen;
}

const osDiskOf = ({ name, zone }: FakeMachine): AzureDisk => ({
  id: compute(`disks/${name}_OsDisk_1`),
  ...{ name: `${name}_OsDisk_1`, zones: [zone], sku: { name: "Premium_LRS" } },
  managedBy: compute(`virtualMachines/${name}`),
  properties: { diskSizeGB: 64, diskState: "Attached" },
});

/** A Service with a balancer that the cloud provider made, which leads to all workers. */
export function expose(seen: FakeSeen, name: string, address: string, port = 80): void {
  const { azure, cluster } = seen;
  const number = cluster.objects.services.length + 1;
  const uid = `${String(number).repeat(8)}-5ca1-4ab1-8e00-00000000000${number}`;
  const frontend = `a${uid.replaceAll("-", "")}`.slice(0, 32);
  cluster.objects.services.push({
    metadata: { name, namespace: "default", uid },
    spec: { type: "LoadBalancer" },
    status: { loadBalancer: { ingress: [{ ip: address }] } },
  });
  azure.addresses.push(addressOf(frontend, address, "1", "2", "3") as never);
  const workers = azure.interfaces
    .filter(({ name }) => name.includes("workers"))
    .map(({ properties }) => properties.ipConfigurations![0]!.properties.privateIPAddress!);
  const made = balancerOf({
    name: "zoned-prod",
    rules: [{ name: frontend, address, port, isFloating: true }],
    pool: {
      name: "zoned-prod",
      properties: {
        loadBalancerBackendAddresses: workers.map((ipAddress) => ({ properties: { ipAddress } })),
      },
    },
    probe: { protocol: "Http", port: 10256, requestPath: "/healthz" },
  }) as (typeof azure.balancers)[number];
  const before = azure.balancers.find(({ name }) => name === made.name);
  if (before === undefined) azure.balancers.push(made);
  else {
    before.properties.frontendIPConfigurations!.push(...made.properties.frontendIPConfigurations!);
    before.properties.loadBalancingRules!.push(...made.properties.loadBalancingRules!);
  }
}

/** A claim whose disk is attached to a machine, or to none. */
export function claim(seen: FakeSeen, name: string, zone: string, machine?: string): void {
  const disk = compute(`disks/pvc-${name}`);
  seen.azure.disks.push({
    ...{ id: disk, name: `pvc-${name}`, zones: [zone], sku: { name: "Premium_LRS" } },
    managedBy: machine && compute(`virtualMachines/${machine}`),
    properties: { diskSizeGB: 8, diskState: machine ? "Attached" : "Unattached" },
  });
  seen.cluster.objects.volumes.push({
    metadata: { name: `pvc-${name}` },
    spec: { csi: { volumeHandle: disk.toLowerCase() }, claimRef: { namespace: "default", name } },
    status: { phase: "Bound" },
  });
  seen.azure.machines
    .find((one) => one.name === machine)
    ?.dataDisks.push({ name: `pvc-${name}`, diskSizeGB: 8, managedDisk: { id: disk } });
}

/** What the doctor finds, of a machine or of the whole cluster. */
export function problem(seen: FakeSeen, check: string, saw: string, machine?: string): void {
  seen.cluster.report.healthy = false;
  seen.cluster.report.checks.push({
    ...{ name: check, saw: "" },
    problems: [{ machine, saw, fix: "pulumi up" }],
  });
}

/** A cluster whose API does not answer. */
export function silence(seen: FakeSeen): void {
  const { cluster } = seen;
  cluster.report.looked = false;
  problem(
    seen,
    "API",
    "the API at https://api.example.com:6443 does not answer from here (ECONNREFUSED): the cluster is down, or this network may not reach it",
  );
  delete (cluster as { objects?: unknown }).objects;
}
