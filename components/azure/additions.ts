import type { input } from "@pulumi/azure-native/types";
import * as pulumi from "@pulumi/pulumi";

import { digest } from "../digest";
import { isRecord } from "../settings/read";
import { dnsTagName } from "../settings/rules/names";
import type { Settings } from "../settings/settings";
import { shortName } from "./image-offers";
import { egressName, groupName, kubeletIdentityName } from "./resource-names";
import { Shown, shownAs } from "./shown";
import { tagsOf } from "./stack-tag";
import { tag } from "./state";

type Properties = Readonly<Record<string, unknown>>;

/**
 * What a property is sent as: what this program gives it, with what Azure shows in it that somebody
 * else wrote. Lists are in Azure's order, in which a refresh writes them into the state too.
 *
 * @param tags that Azure shows on the resource
 */
type Rule = (own: unknown, shown: unknown, tags?: unknown) => unknown;

type Rules = Readonly<Record<string, Rule>>;

interface AddedTo {
  /** The property that has the resource's name, or that of its machine. */
  readonly name: string;
  readonly rules: Rules;
  /** Names of tags that Azure keeps there; others it drops, and says nothing. */
  readonly tagName?: RegExp;
}

/** By Pulumi's type token. */
type Additions = Readonly<Record<string, AddedTo>>;

/** Tags in which this program records what it did begin so; see `tag` in state.ts. */
const ownTag = /^zoned-/i;

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === "" ||
  (typeof value === "object" && Object.values(value).every(isEmpty));

const isSameText = (one: unknown, other: unknown): boolean =>
  String(one).toLowerCase() === String(other).toLowerCase();

const pick = (value: unknown, keys: readonly string[]): Properties =>
  Object.fromEntries(
    Object.entries(isRecord(value) ? value : {}).filter(([key]) => keys.includes(key)),
  );

/** The properties that a program may send of what Azure shows. */
const inputsOf =
  <T>() =>
  (...keys: (keyof T & string)[]) =>
  (shown: unknown): Properties =>
    pick(shown, keys);

/** Every tag but those of this program, and those that its settings had before. */
const tagsBut =
  (former: readonly string[]): Rule =>
  (own, shown) => {
    const mine = (own ?? {}) as Properties;
    const others = Object.entries((shown ?? {}) as Properties).filter(
      ([key]) =>
        !ownTag.test(key) && ![...former, ...Object.keys(mine)].some((one) => isSameText(one, key)),
    );
    return others.length === 0 ? own : { ...Object.fromEntries(others), ...mine };
  };

/** A property that this program does not set, or leaves at Azure's default. */
const setting =
  (byDefault?: unknown, asInput: (shown: unknown) => unknown = (shown) => shown): Rule =>
  (own, shown) =>
    (own === undefined || own === byDefault) && !isEmpty(shown) && shown !== byDefault
      ? asInput(shown)
      : own;

const fields =
  (rules: Rules): Rule =>
  (own, shown) => {
    const mine = (own ?? {}) as Properties;
    const all = { ...mine, ...added(mine, shown, rules) };
    return Object.keys(all).length === 0 ? own : all;
  };

/** Elements that are told apart by one of their properties, or by themselves. */
const list =
  (
    identify: (element: unknown) => unknown,
    asInput: (shown: unknown) => unknown,
    inOwn: Rule = (own) => own,
  ): Rule =>
  (own, shown) => {
    const mine = (own ?? []) as readonly unknown[];
    const all = (shown ?? []) as readonly unknown[];
    const isSame = (one: unknown, other: unknown) => isSameText(identify(one), identify(other));
    const shownOf = (one: unknown) => all.find((other) => isSame(one, other));
    const kept = mine.map((one) => inOwn(one, shownOf(one)));
    if (all.every((one) => mine.some((other) => isSame(one, other)))) {
      return own === undefined ? own : kept;
    }
    return [
      ...all.map((one) => kept.find((other) => isSame(one, other)) ?? asInput(one)),
      ...kept.filter((one) => shownOf(one) === undefined),
    ];
  };

/**
 * Of more than one, Azure takes all that the region has, for an address (terraform-provider-azurerm #16470) and for an
 * internal frontend (#22604), and changes none.
 */
const ownZones: Rule = (own, shown) =>
  own === undefined ? own : list((zone) => zone, String)(own, shown);

const idOf = (element: unknown): unknown => (element as { id?: unknown }).id;
const nameOf = (element: unknown): unknown => (element as { name?: unknown }).name;

const toId = inputsOf<input.network.SubResourceArgs>()("id");
const reference = setting(undefined, toId);
const references = list(idOf, toId);

/** What this program has made is not somebody else's once it sends it no more. */
const unlessOwn =
  (path: string, rule: Rule): Rule =>
  (own, shown) =>
    String(idOf(shown ?? {}))
      .toLowerCase()
      .includes(path.toLowerCase())
      ? own
      : rule(own, shown);

const each = (asInput: (shown: unknown) => unknown) => (shown: unknown) =>
  (shown as unknown[]).map(asInput);

/** Existing identities that an update has given machines. */
export interface Given {
  /** To control planes. */
  readonly identityId?: string;
  /** To all machines. */
  readonly kubeletIdentityId?: string;
}

interface ShownIdentity {
  readonly type?: string;
  readonly userAssignedIdentities?: Properties;
}

/** Existing identities that a machine is given, as a tag: no value of one has room for two ids. */
export const identitiesTag = (ids: readonly string[]): string =>
  ids.map((id) => digest(id.toLowerCase())).join(" ");

/**
 * Ids of those that a machine has and this program has not given it: its own bear the cluster's name and lie in its
 * group, and others' are in the outputs, or in the machine's tag where an update has failed.
 */
export function identitiesOfOthers(
  { identity: shown, tags }: { readonly identity?: unknown; readonly tags?: unknown },
  settings: Pick<Settings, "clusterName" | "resourceGroup">,
  { identityId = "", kubeletIdentityId = "" }: Given = {},
): string[] {
  const { clusterName } = settings;
  const own = [clusterName, kubeletIdentityName(clusterName)].map(
    (name) =>
      `/resourceGroups/${groupName(settings)}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${name}`,
  );
  const given = [...own, identityId, kubeletIdentityId].filter((one) => one !== "");
  const noted = String(((tags ?? {}) as Properties)[tag.identities] ?? "").split(" ");
  const { userAssignedIdentities = {} } = (shown ?? {}) as ShownIdentity;
  return Object.keys(userAssignedIdentities).filter(
    (id) =>
      !given.some((one) => id.toLowerCase().endsWith(one.toLowerCase())) &&
      !noted.includes(identitiesTag([id])),
  );
}

/** All identities that a machine has. `None` takes away those that this program gave it. */
const identity =
  (ofOthers: (shown: unknown, tags: unknown) => string[]): Rule =>
  (wanted, shown, shownTags) => {
    const { type = "", userAssignedIdentities = {} } = (shown ?? {}) as ShownIdentity;
    const mine = wanted as { type: string; userAssignedIdentities?: string[] };
    const others = ofOthers(shown, shownTags);
    const isSystem = /SystemAssigned/i.test(type);
    if (others.length === 0 && !isSystem) return wanted;
    const wantedIds = mine.userAssignedIdentities ?? [];
    const ids = list((id) => id, String)(
      wantedIds,
      Object.keys(userAssignedIdentities).filter(
        (id) => others.includes(id) || wantedIds.some((one) => isSameText(one, id)),
      ),
    ) as string[];
    const types = [
      ...(isSystem ? ["SystemAssigned"] : []),
      ...(ids.length > 0 ? ["UserAssigned"] : []),
    ];
    return {
      type: types.join(", "),
      ...(ids.length > 0 && { userAssignedIdentities: ids }),
    };
  };

const toAddress = inputsOf<input.network.LoadBalancerBackendAddressArgs>()(
  "adminState",
  "ipAddress",
  "loadBalancerFrontendIPConfiguration",
  "name",
  "subnet",
  "virtualNetwork",
);
const toPool = inputsOf<input.network.BackendAddressPoolArgs>()(
  "drainPeriodInSeconds",
  "id",
  "loadBalancerBackendAddresses",
  "location",
  "name",
  "syncMode",
  "tunnelInterfaces",
  "virtualNetwork",
);

/** The lists of a load balancer; those of its members that are left out here are the plugin's. */
const balancerLists: Rules = {
  frontendIPConfigurations: list(
    nameOf,
    inputsOf<input.network.FrontendIPConfigurationArgs>()(
      "gatewayLoadBalancer",
      "id",
      "name",
      "privateIPAddress",
      "privateIPAddressVersion",
      "privateIPAllocationMethod",
      "publicIPAddress",
      "publicIPPrefix",
      "subnet",
      "zones",
    ),
    fields({ zones: ownZones }),
  ),
  backendAddressPools: list(nameOf, (shown) => {
    const pool = toPool(shown);
    const members = pool["loadBalancerBackendAddresses"];
    return members === undefined
      ? pool
      : { ...pool, loadBalancerBackendAddresses: each(toAddress)(members) };
  }),
  probes: list(
    nameOf,
    inputsOf<input.network.ProbeArgs>()(
      "id",
      "intervalInSeconds",
      "name",
      "noHealthyBackendsBehavior",
      "numberOfProbes",
      "port",
      "probeThreshold",
      "protocol",
      "requestPath",
    ),
  ),
  loadBalancingRules: list(
    nameOf,
    inputsOf<input.network.LoadBalancingRuleArgs>()(
      "backendAddressPool",
      "backendAddressPools",
      "backendPort",
      "disableOutboundSnat",
      "enableFloatingIP",
      "enableTcpReset",
      "frontendIPConfiguration",
      "frontendPort",
      "id",
      "idleTimeoutInMinutes",
      "loadDistribution",
      "name",
      "probe",
      "protocol",
    ),
  ),
  outboundRules: list(
    nameOf,
    inputsOf<input.network.OutboundRuleArgs>()(
      "allocatedOutboundPorts",
      "backendAddressPool",
      "enableTcpReset",
      "frontendIPConfigurations",
      "id",
      "idleTimeoutInMinutes",
      "name",
      "protocol",
    ),
  ),
};

const interfaceConfigurations = list(
  nameOf,
  inputsOf<input.network.NetworkInterfaceIPConfigurationArgs>()(
    "applicationGatewayBackendAddressPools",
    "applicationSecurityGroups",
    "gatewayLoadBalancer",
    "id",
    "loadBalancerBackendAddressPools",
    "loadBalancerInboundNatRules",
    "name",
    "primary",
    "privateIPAddress",
    "privateIPAddressPrefixLength",
    "privateIPAddressVersion",
    "privateIPAllocationMethod",
    "publicIPAddress",
    "subnet",
    "type",
    "virtualNetworkTaps",
  ),
  fields({
    applicationGatewayBackendAddressPools: references,
    applicationSecurityGroups: references,
    gatewayLoadBalancer: reference,
    loadBalancerBackendAddressPools: references,
    loadBalancerInboundNatRules: references,
    publicIPAddress: reference,
  }),
);

const targetRegions = list(
  (region) => shortName(String(nameOf(region))),
  inputsOf<input.compute.TargetRegionArgs>()(
    "additionalReplicaSets",
    "encryption",
    "excludeFromLatest",
    "name",
    "regionalReplicaCount",
    "storageAccountType",
  ),
);

const networkToken = (type: string): string => `azure-native:network:${type}`;

/**
 * What others write on the resources of a cluster: policies, operators and
 * the cloud provider. Azure's network takes a PUT for the whole resource, and takes away what it
 * leaves out; Compute does so with tags and identities. All else of a machine that this program does
 * not set stays by itself, see `ignoredAlways`; and so do subnets of the network, rules of the security
 * group and routes of the table, which the plugin sends along.
 *
 * An element that this program once made under another name counts as somebody else's.
 */
export function additionsTo(
  settings: Pick<Settings, "clusterName" | "resourceGroup">,
  previous: KeepAdditionsArgs["previous"] = {},
): Additions {
  const { clusterName } = settings;
  const tags = tagsBut(previous.tags ?? []);
  return {
    "azure-native:resources:ResourceGroup": {
      name: "resourceGroupName",
      rules: { tags, managedBy: setting() },
    },
    "azure-native:compute:Gallery": { name: "galleryName", rules: { tags } },
    "azure-native:compute:GalleryImage": { name: "galleryImageName", rules: { tags } },
    "azure-native:compute:GalleryImageVersion": {
      name: "galleryImageVersionName",
      rules: { tags, publishingProfile: fields({ targetRegions }) },
    },
    "azure-native:managedidentity:UserAssignedIdentity": { name: "resourceName", rules: { tags } },
    "azure-native:storage:StorageAccount": { name: "accountName", rules: { tags } },
    "azure-native:privatedns:PrivateZone": {
      name: "privateZoneName",
      rules: { tags },
      tagName: dnsTagName,
    },
    "azure-native:privatedns:VirtualNetworkLink": {
      name: "virtualNetworkLinkName",
      rules: { tags },
      tagName: dnsTagName,
    },
    [networkToken("VirtualNetwork")]: {
      name: "virtualNetworkName",
      rules: {
        tags,
        addressSpace: fields({ addressPrefixes: list((prefix) => prefix, String) }),
        bgpCommunities: setting(
          undefined,
          inputsOf<input.network.VirtualNetworkBgpCommunitiesArgs>()("virtualNetworkCommunity"),
        ),
        ddosProtectionPlan: reference,
        dhcpOptions: setting(),
        enableDdosProtection: setting(false),
        encryption: setting(
          undefined,
          inputsOf<input.network.VirtualNetworkEncryptionArgs>()("enabled", "enforcement"),
        ),
        flowTimeoutInMinutes: setting(),
        privateEndpointVNetPolicies: setting("Disabled"),
      },
    },
    [networkToken("Subnet")]: {
      name: "subnetName",
      rules: {
        delegations: setting(
          undefined,
          each(
            // Not its etag, which every write changes: see network.ts.
            inputsOf<input.network.DelegationArgs>()(
              "actions",
              "id",
              "name",
              "serviceName",
              "type",
            ),
          ),
        ),
        natGateway: unlessOwn(`/natGateways/${egressName(clusterName, undefined)}`, reference),
        privateEndpointNetworkPolicies: setting("Disabled"),
        privateLinkServiceNetworkPolicies: setting("Enabled"),
        routeTable: reference,
        serviceEndpointPolicies: references,
        serviceEndpoints: setting(
          undefined,
          each(
            inputsOf<input.network.ServiceEndpointPropertiesFormatArgs>()(
              "locations",
              "networkIdentifier",
              "provisioningState",
              "service",
            ),
          ),
        ),
      },
    },
    [networkToken("NetworkSecurityGroup")]: {
      name: "networkSecurityGroupName",
      rules: { tags, flushConnection: setting(false) },
    },
    [networkToken("RouteTable")]: {
      name: "routeTableName",
      rules: { tags, disableBgpRoutePropagation: setting(false) },
    },
    [networkToken("PublicIPAddress")]: {
      name: "publicIpAddressName",
      rules: {
        tags,
        ddosSettings: (own, shown) =>
          (shown as { protectionMode?: string } | undefined)?.protectionMode ===
          "VirtualNetworkInherited"
            ? own
            : setting()(own, shown),
        dnsSettings: (own, shown) =>
          own === undefined
            ? setting()(own, shown)
            : fields({ reverseFqdn: setting() })(own, shown),
        idleTimeoutInMinutes: setting(4),
        zones: ownZones,
      },
    },
    [networkToken("NatGateway")]: {
      name: "natGatewayName",
      rules: {
        tags,
        idleTimeoutInMinutes: setting(4),
        publicIpAddresses: references,
        publicIpPrefixes: references,
      },
    },
    [networkToken("LoadBalancer")]: {
      name: "loadBalancerName",
      rules: { tags, ...balancerLists },
    },
    [networkToken("NetworkInterface")]: {
      name: "networkInterfaceName",
      rules: {
        tags,
        dnsSettings: fields({ dnsServers: setting(), internalDnsNameLabel: setting() }),
        ipConfigurations: interfaceConfigurations,
        networkSecurityGroup: reference,
      },
    },
    "azure-native:compute:VirtualMachine": {
      name: "vmName",
      rules: {
        tags,
        identity: identity((shown, shownTags) =>
          identitiesOfOthers({ identity: shown, tags: shownTags }, settings, previous),
        ),
        networkProfile: fields({
          networkInterfaces: list(
            idOf,
            inputsOf<input.compute.NetworkInterfaceReferenceArgs>()(
              "deleteOption",
              "id",
              "primary",
            ),
          ),
        }),
      },
    },
    "azure-native:compute:VirtualMachineExtension": {
      name: "vmName",
      rules: { tags, enableAutomaticUpgrade: setting(false) },
    },
  };
}

/**
 * What this program sets of no machine and others do: Update Manager, Defender, backup, a hybrid
 * benefit. A PUT that leaves it out does not change it, but after a refresh it would be a change.
 */
export const ignoredAlways: readonly string[] = [
  "additionalCapabilities",
  "applicationProfile",
  "capacityReservation",
  "diagnosticsProfile.bootDiagnostics.storageUri",
  "extensionsTimeBudget",
  "licenseType",
  "osProfile.linuxConfiguration.enableVMAgentPlatformUpdates",
  "osProfile.linuxConfiguration.patchSettings",
  "scheduledEventsPolicy",
  "securityProfile.proxyAgentSettings",
];

export interface KeepAdditionsArgs {
  readonly settings: Pick<Settings, "clusterName" | "location" | "resourceGroup" | "tags">;
  readonly shown: Shown;
  /** What the last update left. */
  readonly previous?: Given & { readonly tags?: readonly string[] };
}

/**
 * Sends along, with every resource, what Azure shows of others on it, and gives it the tags and the region of
 * the settings. Call before any is made.
 */
export function keepAdditions({ settings, shown, previous }: KeepAdditionsArgs): void {
  const additions = additionsTo(settings, previous);
  pulumi.runtime.registerStackTransformation(({ type, props, opts }) => {
    const here = located(type, props, settings, additions);
    const own = tagged(type, here, tagsOf(settings), additions);
    return { props: withAdditions(type, own, additions, shown), opts };
  });
}

/** What takes tags is in a region. Where none is said, azure-native takes `azure-native:location` before the group's. */
const located = (
  type: string,
  props: Properties,
  { location }: Pick<Settings, "location">,
  additions: Additions,
): Properties =>
  additions[type]?.rules["tags"] === undefined
    ? props
    : { ...props, location: props["location"] ?? location };

/** The properties of a resource, with the tags of the settings where it takes some. */
export const tagged = (
  type: string,
  props: Properties,
  tags: Settings["tags"],
  additions: Additions,
): Properties => {
  const { rules = {}, tagName = /^/ } = additions[type] ?? {};
  const taken = Object.entries(tags).filter(([key]) => tagName.test(key));
  return rules["tags"] === undefined || taken.length === 0
    ? props
    : {
        ...props,
        tags: pulumi
          .output(props["tags"] as pulumi.Input<Settings["tags"] | undefined>)
          .apply((own) => ({ ...Object.fromEntries(taken), ...own })),
      };
};

/** The properties of a resource, with what Azure shows of others in them. */
export function withAdditions(
  type: string,
  props: Properties,
  additions: Additions,
  shown: Shown,
): Properties {
  const addedTo = additions[type];
  if (addedTo === undefined || shown.size === 0) return props;
  const { name, rules } = addedTo;
  const given = props[name] as pulumi.Input<string>;
  const of = (one: string): Properties => flat(shown.get(shownAs(type, one)) ?? {});
  // The name of a step's machine is not known before that is made.
  if (typeof given !== "string") {
    return sentWith(props, rules, (property) =>
      pulumi.output(given).apply((one) => of(one)[property]),
    );
  }
  const resource = of(given);
  const touched = Object.entries(rules).filter(([property]) => !isEmpty(resource[property]));
  return sentWith(props, Object.fromEntries(touched), (property) => resource[property]);
}

const sentWith = (
  props: Properties,
  rules: Rules,
  shownOf: (property: string) => unknown,
): Properties => ({
  ...props,
  ...Object.fromEntries(
    Object.entries(rules).map(([property, rule]) => [
      property,
      pulumi
        .all([props[property], shownOf(property), shownOf("tags")])
        .apply(([own, shown, tags]) => rule(own, shown, tags)),
    ]),
  ),
});

/** Pulumi's shape of what Azure's REST API shows: nothing nested in `properties`. */
function flat(shown: Properties): Properties {
  const { properties, ...others } = shown;
  const all = { ...others, ...(isRecord(properties) ? properties : { properties }) };
  return Object.fromEntries(
    Object.entries(all)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key, flatValue(value)]),
  );
}

const flatValue = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(flatValue) : isRecord(value) ? flat(value) : value;

/** What the rules make of each of its properties. */
const added = (own: Properties, shown: unknown, rules: Rules): Properties =>
  Object.fromEntries(
    Object.entries(rules)
      .map(([key, rule]) => [key, rule(own[key], isRecord(shown) ? shown[key] : undefined)])
      .filter(([, value]) => value !== undefined),
  );
