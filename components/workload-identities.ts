import * as managedidentity from "@pulumi/azure-native/managedidentity";
import * as storage from "@pulumi/azure-native/storage";
import * as pulumi from "@pulumi/pulumi";

import { azureCloudAt } from "./azure/clouds";
import { keyOf } from "./azure/existing-network";
import { roleAt } from "./azure/role-ids";
import type { Shown } from "./azure/shown";
import type { WorkloadClients } from "./azure/identities";
import type { Certificates } from "./certificates";
import type { ClusterGroup } from "./cluster-group";
import { digest } from "./digest";
import { type Identity, type IdentityPlace, ownIdentity } from "./identity";
import { assignRole, oneAtATime } from "./role-assignments";
import { accountKey, hasIssuer, ownAccounts, subjectOf } from "./settings/logins";
import { issuerAccount, issuerContainer } from "./azure/resource-names";
import { parseIdentity } from "./settings/azure-ids";
import { azureName, roleKey } from "./settings/rules/identities";
import type { Settings, WorkloadIdentity } from "./settings/settings";
import {
  discoveryDocument,
  discoveryPath,
  keysDocument,
  keysPath,
  tokenIssuerOf,
} from "./token-issuer";

export interface WorkloadIdentitiesArgs {
  readonly resourceGroup: ClusterGroup;
  readonly settings: Settings;
  readonly subscriptionId: string;
  readonly shown: Shown;
  readonly certificates: Pick<Certificates, "serviceAccount">;
  /** Of the cluster, as which the cloud provider, the disk driver and etcd's snapshots may log in. */
  readonly identity: Pick<Identity, "credential" | "place">;
  /** Client ids of identities that exist already. */
  readonly workloadClients: WorkloadClients["clientIds"];
  /** Something that takes a minute, as in role-assignments.ts. */
  readonly after: pulumi.Resource;
}

/** An identity, as what is made for a service account needs it. */
interface Login extends IdentityPlace {
  readonly clientId: pulumi.Output<string>;
}

type Account = Pick<WorkloadIdentity, "namespace" | "serviceAccount">;

/** Neither name can have an underscore. */
const resourceNameOf = (name: string, { namespace, serviceAccount }: Account): string =>
  `${name}-${namespace}_${serviceAccount}`;

/**
 * What Entra needs to take tokens of service accounts for those of managed identities: the issuer's documents,
 * which anybody may read, and a federated credential for each account. Nothing is made where none is declared and
 * control planes carry the cluster's identity.
 *
 * @see https://learn.microsoft.com/entra/workload-id/workload-identity-federation
 */
export class WorkloadIdentities extends pulumi.ComponentResource {
  /** Client ids of those that the settings declare, by {@link accountKey}. */
  readonly clients: Readonly<Record<string, pulumi.Output<string>>>;
  /** Where the issuer's documents are, once Azure has them. */
  readonly published: pulumi.Output<string[]>;

  constructor(
    private readonly name: string,
    private readonly args: WorkloadIdentitiesArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("zoned:index:WorkloadIdentities", name, {}, opts);
    const { settings, identity } = args;
    this.published = pulumi.all(hasIssuer(settings) ? this.publish() : []);
    const declared = settings.workloadIdentities.map((one) => [one, this.loginOf(one)] as const);
    const own = settings.machineIdentity
      ? []
      : ownAccounts(settings).map((account) => {
          const { clientId } = identity.credential;
          return [account, { clientId, ...identity.place! }] as const;
        });
    let before: pulumi.Resource | undefined;
    for (const [account, login] of [...declared, ...own]) {
      before = this.admit(account, login, before);
    }
    this.clients = Object.fromEntries(
      declared.map(([account, { clientId }]) => [accountKey(account), clientId]),
    );
    this.registerOutputs();
  }

  private get issuer(): string {
    return tokenIssuerOf(this.args.settings, this.args.subscriptionId);
  }

  private get inGroup(): pulumi.CustomResourceOptions {
    return { parent: this, deletedWith: this.args.resourceGroup.own };
  }

  private publish(): pulumi.Output<string>[] {
    const { name, inGroup } = this;
    const { resourceGroup, settings, subscriptionId, certificates } = this.args;
    const { name: accountName } = new storage.StorageAccount(
      `${name}-issuer`,
      {
        resourceGroupName: resourceGroup.name,
        accountName: issuerAccount(settings.clusterName, subscriptionId),
        kind: "StorageV2",
        sku: { name: "Standard_ZRS" },
        // Entra asks for the documents as anybody does. Nothing else is in the account.
        allowBlobPublicAccess: true,
        allowCrossTenantReplication: false,
        // By the account's key azure-native writes them.
        allowSharedKeyAccess: true,
        enableHttpsTrafficOnly: true,
        minimumTlsVersion: "TLS1_2",
      },
      inGroup,
    );
    const { name: containerName } = new storage.BlobContainer(
      `${name}-documents`,
      {
        resourceGroupName: resourceGroup.name,
        accountName,
        containerName: issuerContainer,
        // Each by its name; a list of them is nobody's.
        publicAccess: "Blob",
      },
      inGroup,
    );
    const publish = (what: string, blobName: string, text: pulumi.Input<string>) =>
      new storage.Blob(
        `${name}-${what}`,
        {
          resourceGroupName: resourceGroup.name,
          ...{ accountName, containerName, blobName },
          contentType: "application/json",
          source: pulumi.output(text).apply((all) => new pulumi.asset.StringAsset(all)),
        },
        inGroup,
      ).url;
    return [
      publish("discovery", discoveryPath, discoveryDocument(this.issuer)),
      publish("keys", keysPath, certificates.serviceAccount.trusted.apply(keysDocument)),
    ];
  }

  /** @param before Azure writes one credential of an identity at a time, and refuses another one meanwhile */
  private admit(
    account: Account,
    { resourceGroupName, resourceName, isOwn }: Login,
    before: pulumi.Resource | undefined,
  ): pulumi.Resource {
    const { settings } = this.args;
    return new managedidentity.FederatedIdentityCredential(
      resourceNameOf(this.name, account),
      {
        ...{ resourceGroupName, resourceName },
        federatedIdentityCredentialResourceName: azureName(settings.clusterName, account),
        issuer: this.issuer,
        subject: subjectOf(account),
        audiences: [azureCloudAt(settings.resourceManagerEndpoint).tokenAudience],
      },
      {
        ...(isOwn ? this.inGroup : { parent: this }),
        dependsOn: before === undefined ? [] : [before],
      },
    );
  }

  private loginOf(one: WorkloadIdentity): Login {
    const { resourceGroup, settings, workloadClients } = this.args;
    const place = parseIdentity(one.identityId);
    if (place !== undefined) {
      const clientId = pulumi.output(workloadClients.get(keyOf(one.identityId)) ?? "");
      return {
        ...{ clientId, resourceGroupName: place.resourceGroup, resourceName: place.name },
        isOwn: false,
      };
    }
    const name = resourceNameOf(this.name, one);
    const called = azureName(settings.clusterName, one);
    const identity = ownIdentity(name, called, this.args, this);
    const { clientId, principalId, name: resourceName } = identity;
    one.roles.forEach((given) => {
      const { role, scope } = given;
      const roleDefinitionId = roleAt(role, scope, this.args.subscriptionId);
      assignRole(
        // By its content, as Azure names it: by its position it would be made while another still has its name.
        `${name}-identity-role-${digest(roleKey(given)).slice(0, 8)}`,
        { principalId, scope, roleDefinitionId },
        { parent: this, dependsOn: [this.args.after], ...oneAtATime },
      );
    });
    return { clientId, resourceGroupName: resourceGroup.name, resourceName, isOwn: true };
  }
}
