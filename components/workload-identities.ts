import * as managedidentity from "@pulumi/azure-native/managedidentity";
import * as storage from "@pulumi/azure-native/storage";
import * as pulumi from "@pulumi/pulumi";

import { azureCloudAt } from "./azure/clouds";
import { keyOf } from "./azure/existing-network";
import type { WorkloadClients } from "./azure/workload-clients";
import type { Certificates } from "./certificates";
import type { ClusterGroup } from "./cluster-group";
import { assignRole, builtInRole } from "./role-assignments";
import { parseIdentity } from "./settings/identity-id";
import { azureName } from "./settings/rules/workload-identities";
import type { Settings, WorkloadIdentity } from "./settings/settings";
import {
  discoveryDocument,
  discoveryPath,
  issuerAccount,
  issuerContainer,
  keysDocument,
  keysPath,
  tokenIssuerOf,
} from "./token-issuer";

export interface WorkloadIdentitiesArgs {
  readonly resourceGroup: ClusterGroup;
  readonly settings: Settings;
  readonly subscriptionId: string;
  readonly certificates: Pick<Certificates, "serviceAccount">;
  /** Client ids of identities that exist already. */
  readonly workloadClients: WorkloadClients["clientIds"];
  /** Something that takes a minute, as in role-assignments.ts. */
  readonly after: pulumi.Resource;
}

/**
 * What Entra needs to take tokens of declared service accounts for those of managed identities: the issuer's
 * documents, which anybody may read, and a federated credential for each account. Nothing is made where none is
 * declared.
 *
 * @see https://learn.microsoft.com/entra/workload-id/workload-identity-federation
 */
export class WorkloadIdentities extends pulumi.ComponentResource {
  /** In the order of the setting. */
  readonly clientIds: readonly pulumi.Output<string>[];

  constructor(
    private readonly name: string,
    private readonly args: WorkloadIdentitiesArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("zoned:index:WorkloadIdentities", name, {}, opts);
    const { workloadIdentities } = args.settings;
    if (workloadIdentities.length > 0) this.publish();
    let before: pulumi.Resource | undefined;
    this.clientIds = workloadIdentities.map((one) => {
      const { clientId, credential } = this.admit(one, before);
      before = credential;
      return clientId;
    });
    this.registerOutputs();
  }

  private get issuer(): string {
    return tokenIssuerOf(this.args.settings, this.args.subscriptionId);
  }

  private get inGroup(): pulumi.CustomResourceOptions {
    return { parent: this, deletedWith: this.args.resourceGroup.own };
  }

  private publish(): void {
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
      );
    publish("discovery", discoveryPath, discoveryDocument(this.issuer));
    publish("keys", keysPath, certificates.serviceAccount.trusted.apply(keysDocument));
  }

  /** @param before Azure writes one credential of an identity at a time, and refuses another one meanwhile */
  private admit(one: WorkloadIdentity, before: pulumi.Resource | undefined) {
    const { settings } = this.args;
    const called = azureName(settings.clusterName, one);
    const { clientId, resourceGroupName, resourceName, own } = this.identityOf(one, called);
    const credential = new managedidentity.FederatedIdentityCredential(
      `${this.name}-${one.namespace}-${one.serviceAccount}`,
      {
        ...{ resourceGroupName, resourceName },
        federatedIdentityCredentialResourceName: called,
        issuer: this.issuer,
        subject: `system:serviceaccount:${one.namespace}:${one.serviceAccount}`,
        audiences: [azureCloudAt(settings.resourceManagerEndpoint).tokenAudience],
      },
      {
        ...(own ? this.inGroup : { parent: this }),
        dependsOn: before === undefined ? [] : [before],
      },
    );
    return { clientId, credential };
  }

  private identityOf(one: WorkloadIdentity, called: string) {
    const { resourceGroup, workloadClients } = this.args;
    const place = parseIdentity(one.identityId);
    if (place !== undefined) {
      const clientId = pulumi.output(workloadClients.get(keyOf(one.identityId)) ?? "");
      return {
        ...{ clientId, resourceGroupName: place.resourceGroup, resourceName: place.name },
        own: false,
      };
    }
    const name = `${this.name}-${one.namespace}-${one.serviceAccount}-identity`;
    const identity = new managedidentity.UserAssignedIdentity(
      name,
      { resourceGroupName: resourceGroup.name, resourceName: called },
      this.inGroup,
    );
    const { clientId, principalId, name: resourceName } = identity;
    one.roles.forEach(({ role, scope }, index) => {
      const roleDefinitionId = role.startsWith("/")
        ? role
        : builtInRole(this.args.subscriptionId, role);
      assignRole(
        `${name}-role-${index}`,
        { principalId, scope, roleDefinitionId },
        { parent: this, dependsOn: [this.args.after] },
      );
    });
    return { clientId, resourceGroupName: resourceGroup.name, resourceName, own: true };
  }
}
