/** A resource as the engine's state has it. */
export interface Recorded {
  readonly urn: string;
  readonly type: string;
  readonly custom?: boolean;
  readonly id?: string;
  readonly inputs?: Inputs;
  readonly outputs?: Inputs;
  readonly parent?: string;
  /** URN and id of its provider, joined by `::`. */
  readonly provider?: string;
  readonly dependencies?: readonly string[];
  readonly propertyDependencies?: Readonly<Record<string, readonly string[] | null>>;
  readonly deletedWith?: string;
  /** Another entry has taken its place, and the engine has yet to delete this one. */
  readonly delete?: boolean;
  /** Deleted, and its replacement is yet to be created. */
  readonly pendingReplacement?: boolean;
  /** With one of these the next update sends an update, also when no input has changed. */
  readonly initErrors?: readonly string[];
}

export type Inputs = Readonly<Record<string, unknown>>;

/** A resource that may have been created, and where. */
export type Created = Recorded & { readonly id: string; readonly inputs: Inputs };

export interface PendingOperation {
  readonly type: "creating" | "updating" | "deleting" | "reading" | "importing";
  readonly resource: Recorded;
}

/** What `pulumi stack export` writes. */
export interface Exported {
  readonly version: number;
  readonly deployment: Deployment;
}

export interface Deployment {
  readonly resources?: readonly Recorded[];
  readonly pending_operations?: readonly PendingOperation[];
}

export const nameOf = (urn: string): string => urn.split("::").at(-1)!;

/** The entry that stands for a resource now, and not the one that is still to be deleted. */
export const currentOf = ({ resources = [] }: Deployment, urn: string): Recorded | undefined =>
  resources.find((one) => one.urn === urn && !one.delete);

/** Azure compares ids without regard to case. */
export const isSameId = (one: string | undefined, other: string): boolean =>
  one?.toLowerCase() === other.toLowerCase();

/** URNs of all that must come before a resource in the state. */
const referencesOf = (one: Recorded): string[] =>
  [
    one.parent,
    one.provider?.slice(0, one.provider.lastIndexOf("::")),
    ...(one.dependencies ?? []),
    ...Object.values(one.propertyDependencies ?? {}).flatMap((urns) => urns ?? []),
    one.deletedWith,
  ].filter((urn) => urn !== undefined && urn !== "") as string[];

/**
 * The state with resources that were created and not recorded.
 *
 * An entry of the same URN that was deleted before its replacement gives its place away. One that
 * is replaced by something with another id is left to the engine to delete.
 */
export function withCreated(deployment: Deployment, created: readonly Created[]): Deployment {
  const news = new Map(created.map((one) => [one.urn, one]));
  const kept = (deployment.resources ?? []).flatMap((old): Recorded[] => {
    const now = old.delete ? undefined : news.get(old.urn);
    if (now === undefined) return [old];
    return old.pendingReplacement || isSameId(old.id, now.id) ? [] : [{ ...old, delete: true }];
  });
  const there = new Set([...kept, ...created].map(({ urn }) => urn));
  const attached = created.map((one) => withReferencesTo(there, one));
  return { ...deployment, resources: inOrder([...kept, ...attached]) };
}

/** With these of its references alone: the engine takes no state that lacks what a resource refers to. */
function withReferencesTo(there: ReadonlySet<string>, one: Created): Created {
  const isThere = (urn?: string): boolean => urn !== undefined && there.has(urn);
  const { parent, deletedWith, dependencies, propertyDependencies } = one;
  const ofProperties = Object.entries(propertyDependencies ?? {}).map(
    ([key, urns]) => [key, urns?.filter(isThere) ?? null] as const,
  );
  return {
    ...one,
    parent: isThere(parent) ? parent : undefined,
    deletedWith: isThere(deletedWith) ? deletedWith : undefined,
    dependencies: dependencies?.filter(isThere),
    propertyDependencies: propertyDependencies && Object.fromEntries(ofProperties),
  };
}

/** The same resources, each after what it refers to, and otherwise as they were. */
function inOrder(resources: readonly Recorded[]): Recorded[] {
  const current = new Map(resources.filter((one) => !one.delete).map((one) => [one.urn, one]));
  const ordered = new Set<Recorded>();
  const seen = new Set<Recorded>();
  const place = (one: Recorded): void => {
    if (seen.has(one)) return;
    seen.add(one);
    for (const urn of referencesOf(one)) {
      const other = current.get(urn);
      if (other !== undefined) place(other);
    }
    ordered.add(one);
  };
  resources.forEach(place);
  return [...ordered];
}

/** How the engine marks a secret in its state. */
const secretMark = "4dabf18193072939515e22adb298388d";

const isMap = (value: unknown): value is Inputs =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The inputs to record for a resource that was created as `sent` and then read as `shown`.
 *
 * What Azure never shows, such as customData and protected settings, is as it was sent. Of what it
 * does show, only what was asked for counts: the rest are its defaults, which the next update would
 * take for changes.
 */
export function inputsOf(sent: Inputs, shown: Inputs): Inputs {
  return Object.fromEntries(
    Object.entries(sent).map(([key, value]) => [
      key,
      key in shown ? seen(value, shown[key]) : value,
    ]),
  );
}

function seen(sent: unknown, shown: unknown): unknown {
  if (isMap(sent) && secretMark in sent) return sent;
  if (isMap(sent) && isMap(shown)) return inputsOf(sent, shown);
  if (Array.isArray(sent) && Array.isArray(shown) && sent.length === shown.length) {
    return sent.map((part, index) => seen(part, shown[index]));
  }
  // A list that Azure shows as a map cannot be compared.
  return isMap(sent) === isMap(shown) ? shown : sent;
}

const group = "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}";
const compute = `${group}/providers/Microsoft.Compute`;
const network = `${group}/providers/Microsoft.Network`;
const account = `${group}/providers/Microsoft.Storage/storageAccounts/{accountName}`;

/** The id that azure-native gives to each type of the program, from a resource's inputs. */
export const idTemplates: Readonly<Record<string, string>> = {
  "azure-native:compute:Disk": `${compute}/disks/{diskName}`,
  "azure-native:compute:DiskEncryptionSet": `${compute}/diskEncryptionSets/{diskEncryptionSetName}`,
  "azure-native:compute:Gallery": `${compute}/galleries/{galleryName}`,
  "azure-native:compute:GalleryImage": `${compute}/galleries/{galleryName}/images/{galleryImageName}`,
  "azure-native:compute:GalleryImageVersion": `${compute}/galleries/{galleryName}/images/{galleryImageName}/versions/{galleryImageVersionName}`,
  "azure-native:compute:Snapshot": `${compute}/snapshots/{snapshotName}`,
  "azure-native:containerregistry:Registry": `${group}/providers/Microsoft.ContainerRegistry/registries/{registryName}`,
  "azure-native:network:LoadBalancer": `${network}/loadBalancers/{loadBalancerName}`,
  "azure-native:network:NatGateway": `${network}/natGateways/{natGatewayName}`,
  "azure-native:network:NetworkInterface": `${network}/networkInterfaces/{networkInterfaceName}`,
  "azure-native:network:NetworkSecurityGroup": `${network}/networkSecurityGroups/{networkSecurityGroupName}`,
  "azure-native:network:PublicIPAddress": `${network}/publicIPAddresses/{publicIpAddressName}`,
  "azure-native:privatedns:PrivateRecordSet": `${network}/privateDnsZones/{privateZoneName}/{recordType}/{relativeRecordSetName}`,
  "azure-native:privatedns:PrivateZone": `${network}/privateDnsZones/{privateZoneName}`,
  "azure-native:network:VirtualNetworkPeering": `${network}/virtualNetworks/{virtualNetworkName}/virtualNetworkPeerings/{virtualNetworkPeeringName}`,
  "azure-native:managedidentity:FederatedIdentityCredential": `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{resourceName}/federatedIdentityCredentials/{federatedIdentityCredentialResourceName}`,
  "azure-native:storage:Blob": `${account}/blobServices/default/containers/{containerName}/blobs/{blobName}`,
  "azure-native:privatedns:VirtualNetworkLink": `${network}/privateDnsZones/{privateZoneName}/virtualNetworkLinks/{virtualNetworkLinkName}`,
  "azure-native:resources:ResourceGroup": group,
  "azure-native:authorization:ManagementLockByScope":
    "/{scope}/providers/Microsoft.Authorization/locks/{lockName}",
  "azure-native:authorization:PolicyAssignment":
    "/{scope}/providers/Microsoft.Authorization/policyAssignments/{policyAssignmentName}",
  "azure-native:authorization:PolicyDefinition":
    "/subscriptions/{subscriptionId}/providers/Microsoft.Authorization/policyDefinitions/{policyDefinitionName}",
  "azure-native:authorization:PolicyExemption":
    "/{scope}/providers/Microsoft.Authorization/policyExemptions/{policyExemptionName}",
  "azure-native:authorization:RoleAssignment":
    "/{scope}/providers/Microsoft.Authorization/roleAssignments/{roleAssignmentName}",
  "azure-native:authorization:RoleDefinition":
    "/{scope}/providers/Microsoft.Authorization/roleDefinitions/{roleDefinitionId}",
  "azure-native:network:RouteTable": `${network}/routeTables/{routeTableName}`,
  "azure-native:network:SecurityRule": `${network}/networkSecurityGroups/{networkSecurityGroupName}/securityRules/{securityRuleName}`,
  "azure-native:network:Subnet": `${network}/virtualNetworks/{virtualNetworkName}/subnets/{subnetName}`,
  "azure-native:storage:BlobContainer": `${account}/blobServices/default/containers/{containerName}`,
  "azure-native:storage:BlobServiceProperties": `${account}/blobServices/{blobServicesName}`,
  "azure-native:storage:StorageAccount": account,
  "azure-native:managedidentity:UserAssignedIdentity": `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{resourceName}`,
  "azure-native:compute:VirtualMachineExtension": `${compute}/virtualMachines/{vmName}/extensions/{vmExtensionName}`,
  "azure-native:compute:VirtualMachine": `${compute}/virtualMachines/{vmName}`,
  "azure-native:network:VirtualNetwork": `${network}/virtualNetworks/{virtualNetworkName}`,
};

/** What a preview shows of a value that only Azure has. */
export const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

export const isInAzure = ({ type, custom }: Recorded): boolean =>
  custom === true && type.startsWith("azure-native:");

/** The id that azure-native gives, or would have given, to what it is asked to create. */
export function idOfCreated(
  { type, inputs = {} }: Recorded,
  subscriptionId: string,
): string | undefined {
  const parameters: Inputs = { ...inputs, subscriptionId };
  const segments = idTemplates[type]?.split("/").filter(Boolean) ?? [];
  const filled = segments.map((segment) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    const value = name === undefined ? segment : parameters[name];
    // A scope is a path of its own.
    return typeof value === "string" && value !== unknown ? value.replace(/^\/+|\/+$/g, "") : "";
  });
  return filled.length > 0 && filled.every((segment) => segment !== "")
    ? `/${filled.join("/")}`
    : undefined;
}

/**
 * The subscription of a state's or a plan's own group. What a machine names, and where roles are assigned, may be in
 * those of others.
 */
export function subscriptionIn(resources: readonly Recorded[]): string | undefined {
  const places: ((one: Recorded) => unknown)[] = [
    ({ type, id }) => idTemplates[type]?.startsWith(group) && id,
    ({ type, inputs }) => type === "azure-native:authorization:RoleDefinition" && inputs?.["scope"],
    ({ type, inputs }) =>
      type === "pulumi:providers:azure-native" && `/subscriptions/${inputs?.["subscriptionId"]}`,
  ];
  const text = places.flatMap((place) => resources.map(place)).join(" ");
  return /\/subscriptions\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/i.exec(text)?.[1];
}

const stateOf = ({ outputs }: Recorded): string => String(outputs?.["provisioningState"] ?? "");

/** Whether Azure still works on a resource. */
export const isInFlight = (one: Recorded): boolean =>
  isInAzure(one) && /^(Creating|Updating|Deleting|Accepted|Running)$/i.test(stateOf(one));

/** Whether Azure has accepted a resource and then failed to make or change it. */
export const hasFailed = (one: Recorded): boolean =>
  isInAzure(one) && /^(Failed|Canceled)$/i.test(stateOf(one));

/** Azure resources that go with one of these, themselves among them: what is gone with its VM. */
export function withWhatGoesToo({ resources = [] }: Deployment, urns: readonly string[]): string[] {
  const found = new Set(urns);
  for (const one of resources) {
    if (isInAzure(one) && one.deletedWith !== undefined && found.has(one.deletedWith))
      found.add(one.urn);
  }
  return [...found];
}

/** What `pulumi preview --json` prints, as far as it is needed. */
export interface Preview {
  readonly steps?: readonly { readonly op: string; readonly newState?: Recorded }[];
  readonly diagnostics?: readonly { readonly severity?: string; readonly message?: string }[];
}

/** How a preview shows a value that it must not show. */
const masked = "[secret]";

/** What a preview would create, in Azure and elsewhere. */
export const plannedIn = ({ steps = [] }: Preview): Recorded[] =>
  steps.flatMap(({ op, newState }) =>
    newState !== undefined && /^create/.test(op) ? [newState] : [],
  );

/**
 * What a preview would create and what Azure may have already: a PUT was accepted, and the answer
 * got lost, or the state is older than that.
 *
 * It was ordered after all that it refers to: what is of Azure is in the state, or was begun; so all that its id is
 * made of is known. What is not of Azure may be there without being in a state that is older.
 */
export function maybeCreated(
  planned: readonly Recorded[],
  begun: readonly Recorded[],
  deployment: Deployment,
  subscriptionId: string,
): Created[] {
  const elsewhere = new Map(planned.filter((one) => !isInAzure(one)).map((one) => [one.urn, one]));
  const answers = new Map(begun.map(({ urn }) => [urn, true]));
  const stands = (urn: string): boolean => {
    const other = elsewhere.get(urn);
    const answer =
      answers.get(urn) ??
      (currentOf(deployment, urn) !== undefined ||
        (other !== undefined && referencesOf(other).every(stands)));
    answers.set(urn, answer);
    return answer;
  };
  return planned.filter(isInAzure).flatMap((one) => {
    const id = idOfCreated(one, subscriptionId);
    const current = currentOf(deployment, one.urn);
    const isThere = current && !current.pendingReplacement && isSameId(current.id, id ?? "");
    const isKnown = referencesOf(one).every(stands) && !one.provider?.endsWith(`::${unknown}`);
    if (id === undefined || isThere || !isKnown) return [];
    return [{ ...one, id, inputs: known(one.inputs ?? {}) as Created["inputs"] }];
  });
}

/** The values that a preview has and may show. */
function known(value: unknown): unknown {
  if (value === unknown || value === masked) return undefined;
  if (Array.isArray(value)) return value.map(known).filter((part) => part !== undefined);
  if (typeof value !== "object" || value === null) return value;
  const parts = Object.entries(value).map(([key, part]) => [key, known(part)] as const);
  return Object.fromEntries(parts.filter(([, part]) => part !== undefined));
}

/** Why a preview was refused. */
export const refusalOf = ({ diagnostics = [] }: Preview): string =>
  diagnostics
    .filter(({ severity }) => severity === "error")
    .map(({ message = "" }) => message.trim())
    .join("\n");
