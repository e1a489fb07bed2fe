import { Body } from "../../../arm/resources/resource";
import { createResources, newArm, refusedBy } from "../../support/arm/fixture";
import { Kind, network, valid, withChange } from "../../support/arm/valid-resources";

const part = (path: string) => ({ id: network(`loadBalancers/api/${path}`) });
const [probe] = valid.balancer[1].probes;
const [rule] = valid.balancer[1].loadBalancingRules;
const probed = (change: object) => ({ probes: [{ ...probe, ...change }] });
const ruled = (change: object) => ({ loadBalancingRules: [{ ...rule, ...change }] });
const label = (domainNameLabel: string) => ({ dnsSettings: { domainNameLabel } });
const user = (name: string) => ({
  osProfile: {
    adminUsername: name,
    linuxConfiguration: {
      ssh: {
        publicKeys: [{ path: `/home/${name}/.ssh/authorized_keys`, keyData: "ssh-rsa AAAAB3Nz" }],
      },
    },
  },
});
const key = (keyData: string) => ({
  osProfile: {
    linuxConfiguration: {
      ssh: { publicKeys: [{ path: "/home/azureuser/.ssh/authorized_keys", keyData }] },
    },
  },
});

/** The answer to a valid body with one change, when all resources before it exist. */
async function answerTo(kind: Kind, change: Body): Promise<string> {
  const { arm } = newArm();
  const kinds = Object.keys(valid) as Kind[];
  await createResources(arm, kinds[kinds.indexOf(kind) - 1]);
  return refusedBy(arm.put(valid[kind][0], withChange(kind, change)));
}

/** Limits as Azure's REST reference and its pages of limits name them: the last value, and the next. */
const limits: readonly [
  what: string,
  kind: Kind,
  change: (value: any) => Body,
  taken: readonly unknown[],
  refused: readonly unknown[],
  code: string,
][] = [
  [
    "priority of a rule",
    "rule",
    (priority) => ({ priority }),
    [100, 4096],
    [99, 4097, 100.5],
    "SecurityRuleInvalidPriority",
  ],
  [
    "port of a rule",
    "rule",
    (destinationPortRange) => ({ destinationPortRange }),
    ["0", "65535", "0-65535", "*"],
    ["65536", "1-65536", "-1", "1-2-3", "ssh"],
    "SecurityRuleInvalidPortRange",
  ],
  [
    "source port of a rule",
    "rule",
    (sourcePortRange) => ({ sourcePortRange }),
    ["*"],
    ["65536"],
    "SecurityRuleInvalidPortRange",
  ],
  [
    "protocol of a rule",
    "rule",
    (protocol) => ({ protocol }),
    ["Tcp", "Udp", "Icmp", "Esp", "Ah", "*", "tcp"],
    ["Sctp", "All"],
    "InvalidRequestFormat: .*protocol",
  ],
  [
    "direction of a rule",
    "rule",
    (direction) => ({ direction }),
    ["Inbound", "Outbound"],
    ["Both"],
    "InvalidRequestFormat: .*direction",
  ],
  [
    "source of a rule",
    "rule",
    (sourceAddressPrefix) => ({ sourceAddressPrefix }),
    ["*", "10.0.0.1", "2001:db8::/32", "Internet", "AzureCloud.westeurope"],
    ["10.0.0", "example.com/x"],
    "SecurityRuleInvalidAddressPrefix",
  ],
  [
    "destination of a rule",
    "rule",
    (destinationAddressPrefix) => ({ destinationAddressPrefix }),
    ["VirtualNetwork"],
    ["10.0.0.0/33"],
    "SecurityRuleInvalidAddressPrefix",
  ],
  [
    "interval of a probe",
    "balancer",
    (intervalInSeconds) => probed({ intervalInSeconds }),
    [5],
    [4],
    "InvalidRequestFormat: .*interval",
  ],
  [
    "port of a probe",
    "balancer",
    (port) => probed({ port }),
    [1, 65535],
    [0, 65536],
    "InvalidRequestFormat: .*port",
  ],
  [
    "path of a probe over Tcp",
    "balancer",
    (requestPath) => probed({ protocol: "Tcp", requestPath }),
    [undefined],
    ["/readyz"],
    "InvalidRequestFormat: .*requestPath",
  ],
  [
    "port of a balancer's rule",
    "balancer",
    (frontendPort) => ruled({ frontendPort }),
    [1, 65534],
    [0, 65535, undefined],
    "InvalidRequestFormat: .*ports",
  ],
  [
    "minutes that a balancer keeps a silent connection",
    "balancer",
    (idleTimeoutInMinutes) => ruled({ idleTimeoutInMinutes }),
    [4, 100],
    [3, 101],
    "InvalidRequestFormat: .*idle timeout",
  ],
  [
    "minutes that a NAT gateway keeps a silent connection",
    "nat",
    (idleTimeoutInMinutes) => ({ idleTimeoutInMinutes }),
    [4, 120],
    [3, 121],
    "InvalidIdleTimeout",
  ],
  [
    "sku of a NAT gateway",
    "nat",
    (name) => ({ sku: { name } }),
    ["Standard"],
    ["Basic", "StandardV2"],
    "InvalidRequestFormat: .*sku",
  ],
  [
    "DNS label",
    "apiIp",
    label,
    ["abc", `a${"b".repeat(62)}`],
    ["ab", `a${"b".repeat(63)}`, "1abc", "abc-", "a_bc"],
    "InvalidDomainNameLabel",
  ],
  [
    "customData",
    "machine",
    (length: number) => ({ osProfile: { customData: "A".repeat(length) } }),
    [87_380],
    [87_384],
    "InvalidParameter: Custom data",
  ],
  [
    "host name",
    "machine",
    (computerName) => ({ osProfile: { computerName } }),
    ["a".repeat(64), "cp-1.example"],
    ["a".repeat(65), "cp_1", "-cp"],
    "InvalidParameter: Linux host name",
  ],
  [
    "user",
    "machine",
    user,
    ["azureuser", "administrators"],
    ["admin", "administrator", "Root", "user", "test", "guest"],
    "InvalidParameter: The Admin Username",
  ],
  [
    "SSH key",
    "machine",
    key,
    ["ssh-rsa AAAAB3Nz", "ssh-ed25519 AAAAC3Nz"],
    ["ssh-dss AAAAB3Nz", "AAAAB3Nz"],
    "InvalidParameter: The value of parameter linuxConfiguration.ssh.publicKeys.keyData",
  ],
  [
    "script",
    "extension",
    (length: number) => ({ protectedSettings: { script: "A".repeat(length) } }),
    [262_144],
    [262_148],
    "VMExtensionHandlerSettingsInvalid",
  ],
];

it.each(limits)(
  "takes the last %s that Azure takes, and refuses the next",
  async (_, kind, change, taken, refused, code) => {
    for (const value of taken) {
      expect([value, await answerTo(kind, change(value))]).toEqual([value, "not refused"]);
    }
    for (const value of refused) {
      expect([value, await answerTo(kind, change(value))]).toEqual([
        value,
        expect.stringMatching(new RegExp(`^${code}`)),
      ]);
    }
  },
);

it("takes the same balancer's backend port for two protocols, or with a floating address", async () => {
  const another = (change: object) => ({
    loadBalancingRules: [rule, { ...rule, name: "b", frontendPort: 443, ...change }],
  });
  for (const change of [{ protocol: "Udp" }, { enableFloatingIP: true }]) {
    expect(await answerTo("balancer", another(change))).toBe("not refused");
  }
});

it("refuses what refers to a part of a balancer that is not there, whatever refers to it", async () => {
  for (const change of [
    ruled({ frontendIPConfiguration: part("frontendIPConfigurations/none") }),
    ruled({ backendAddressPools: [part("backendAddressPools/none")] }),
    ruled({ backendAddressPool: part("backendAddressPools/none") }),
    {
      outboundRules: [
        {
          name: "out",
          frontendIPConfigurations: [part("frontendIPConfigurations/api")],
          backendAddressPool: part("backendAddressPools/none"),
        },
      ],
    },
  ]) {
    expect(await answerTo("balancer", change)).toMatch(/^InvalidResourceReference/);
  }
});

it.each<[flaw: string, kind: Kind, change: Body, code: string]>([
  ["a group without a location", "group", { location: undefined }, "LocationRequired"],
  [
    "an interface without a configuration",
    "nic",
    { ipConfigurations: [] },
    "NetworkInterfaceMustHaveAtleastOneIpConfiguration",
  ],
  [
    "an interface whose address is none",
    "nic",
    { ipConfigurations: [{ ...valid.nic[1].ipConfigurations[0], privateIPAddress: "172.16.1" }] },
    "InvalidIPAddressFormat",
  ],
  [
    "encryption at host, which nobody has registered",
    "machine",
    { securityProfile: { encryptionAtHost: true } },
    "InvalidParameter: .*EncryptionAtHost",
  ],
  [
    "Trusted Launch of a Gen1 image",
    "machine",
    { storageProfile: { imageReference: { sku: "server-gen1" } } },
    "BadRequest: Use of TrustedLaunch",
  ],
])("refuses %s", async (_, kind, change, code) => {
  expect(await answerTo(kind, change)).toMatch(new RegExp(`^${code}`));
});

it("refuses an address in a subnet that is full: Azure keeps five", async () => {
  const { arm } = newArm();
  await createResources(arm, "vnet");
  const subnet = network("virtualNetworks/vnet/subnets/small");
  await arm.put(subnet, { addressPrefix: "172.16.9.0/29" });
  const put = (name: number) =>
    arm.put(network(`networkInterfaces/${name}`), {
      location: "westeurope",
      ipConfigurations: [{ name: "ip", subnet: { id: subnet } }],
    });

  for (const name of [1, 2, 3]) await put(name);

  expect(await refusedBy(put(4))).toMatch(/^SubnetIsFull/);
});

it("gives a machine no interface that another has, and one of several that is the primary", async () => {
  const { arm } = newArm();
  await createResources(arm);
  const second = network("networkInterfaces/second");
  const third = network("networkInterfaces/third");
  for (const id of [second, third]) {
    await arm.put(id, {
      location: "westeurope",
      ipConfigurations: [{ name: "ip", subnet: { id: valid.subnet[0] } }],
    });
  }
  const put = (networkInterfaces: object[]) =>
    arm.put(
      valid.machine[0].replace(/cp-1$/, "cp-2"),
      withChange("machine", {
        networkProfile: { networkInterfaces },
        storageProfile: { osDisk: { name: "cp-2-os" } },
      }),
    );

  expect(await refusedBy(put([{ id: valid.nic[0] }]))).toMatch(/^NicInUse/);
  expect(await refusedBy(put([{ id: second }, { id: third }]))).toMatch(
    /^VirtualMachineMustHaveOneNetworkInterfaceAsPrimary/,
  );
  expect(await refusedBy(put([{ id: second, primary: true }, { id: third }]))).toBe("not refused");
});

it("attaches no disk of another machine, of another zone, or where there is one", async () => {
  const { arm } = newArm();
  await createResources(arm, "machine");
  const disk = (zone: string) => valid.disk[0].replace(/data$/, `data-${zone}`);
  for (const zone of ["1", "2"]) {
    await arm.put(disk(zone), withChange("disk", { zones: [zone] }));
  }
  const attach = (...disks: object[]) =>
    arm.put(
      valid.machine[0],
      withChange("machine", {
        storageProfile: {
          dataDisks: disks.map((one) => ({ createOption: "Attach", lun: 0, ...one })),
        },
      }),
    );
  const data = { managedDisk: { id: valid.disk[0] } };

  expect(await refusedBy(attach({ managedDisk: { id: disk("2") } }))).toMatch(
    /^BadRequest: .*Disk zone: '2'/,
  );
  expect(await refusedBy(attach(data, { managedDisk: { id: disk("1") } }))).toMatch(
    /^InvalidParameter: A disk at LUN 0/,
  );
  expect(await refusedBy(attach(data))).toBe("not refused");

  await arm.put(network("networkInterfaces/b"), {
    location: "westeurope",
    ipConfigurations: [{ name: "ip", subnet: { id: valid.subnet[0] } }],
  });
  const other = arm.put(
    valid.machine[0].replace(/cp-1$/, "cp-2"),
    withChange("machine", {
      networkProfile: { networkInterfaces: [{ id: network("networkInterfaces/b") }] },
      storageProfile: {
        osDisk: { name: "b" },
        dataDisks: [{ lun: 0, createOption: "Attach", ...data }],
      },
    }),
  );
  expect(await refusedBy(other)).toMatch(/^ConflictingUserInput: .*cp-1/);
});

it("changes no member of a pool that is an interface, since that one names its pools", async () => {
  const { arm } = newArm();
  await createResources(arm, "nic");
  const shown = arm.peek(valid.balancer[0])!;

  const back = arm.put(valid.balancer[0], { ...valid.balancer[1], ...shown });
  expect(await refusedBy(back)).toBe("not refused");
  const emptied = withChange("balancer", {
    backendAddressPools: [{ name: "cp", loadBalancerBackendAddresses: [] }],
  });
  expect(await refusedBy(arm.put(valid.balancer[0], emptied))).toMatch(
    /^ModificationOfNICIpConfigBackendPoolNotSupported/,
  );
});

it("gives a zone's machine no public address of another zone", async () => {
  const { arm } = newArm();
  await createResources(arm, "balancer");
  await arm.put(network("publicIPAddresses/own"), {
    ...valid.natIp[1],
    zones: ["2"],
  });
  const [configuration] = valid.nic[1].ipConfigurations;
  await arm.put(
    valid.nic[0],
    withChange("nic", {
      ipConfigurations: [
        { ...configuration, publicIPAddress: { id: network("publicIPAddresses/own") } },
      ],
    }),
  );

  expect(await refusedBy(arm.put(...valid.machine))).toMatch(
    /^ComputeResourceZoneConstraintDoesNotMatchPublicIPAddressZoneConstraint/,
  );
});

it("shows the rules of every security group, by which a subnet is closed to the internet", async () => {
  const { arm } = newArm();
  await createResources(arm, "rule");

  const { defaultSecurityRules } = arm.peek(valid.securityGroup[0])! as any;

  // https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview#default-security-rules
  expect(
    defaultSecurityRules.map((one: any) =>
      [
        one.name,
        one.priority,
        one.direction,
        one.sourceAddressPrefix,
        one.destinationAddressPrefix,
        one.access,
      ].join(" "),
    ),
  ).toEqual([
    "AllowVnetInBound 65000 Inbound VirtualNetwork VirtualNetwork Allow",
    "AllowAzureLoadBalancerInBound 65001 Inbound AzureLoadBalancer * Allow",
    "DenyAllInBound 65500 Inbound * * Deny",
    "AllowVnetOutBound 65000 Outbound VirtualNetwork VirtualNetwork Allow",
    "AllowInternetOutBound 65001 Outbound * Internet Allow",
    "DenyAllOutBound 65500 Outbound * * Deny",
  ]);
});
