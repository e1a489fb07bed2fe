import {
  MutatingAdmissionPolicy,
  MutatingAdmissionPolicyBinding,
} from "@pulumi/kubernetes/admissionregistration/v1";
import { ConfigMap } from "@pulumi/kubernetes/core/v1";
import * as pulumi from "@pulumi/pulumi";

import { type AzureCloud, azureCloudAt } from "../azure/clouds";
import type { Settings } from "../settings/settings";

/** Where a pod finds the token by which it logs in to Azure. */
const tokenVolume = {
  name: "azure-identity-token",
  mountPath: "/var/run/secrets/azure/tokens",
  file: "azure-identity-token",
  /** Seconds until the kubelet writes another one, an hour as upstream's webhook has it. */
  expirationSeconds: 3600,
} as const;

/** As whom this program's own pods log in by tokens of their service accounts. */
export interface ServiceAccountLogin {
  readonly tenantId: string;
  readonly clientId: pulumi.Input<string>;
  readonly resourceManagerEndpoint: string;
}

/**
 * What a pod has to log in with as its service account, which Azure's libraries prefer to the identity that
 * azure.json names. It stands in the pod itself and not in a policy, which API servers take up some moments later.
 */
export function loginParts(login: ServiceAccountLogin | undefined) {
  if (login === undefined) return { env: [], volumes: [], volumeMounts: [] };
  const { name, mountPath, file, expirationSeconds } = tokenVolume;
  const { tokenAudience } = azureCloudAt(login.resourceManagerEndpoint);
  const token = { path: file, audience: tokenAudience, expirationSeconds };
  return {
    env: [
      { name: "AZURE_CLIENT_ID", value: login.clientId },
      { name: "AZURE_TENANT_ID", value: login.tenantId },
      { name: "AZURE_FEDERATED_TOKEN_FILE", value: `${mountPath}/${file}` },
    ],
    volumes: [{ name, projected: { sources: [{ serviceAccountToken: token }] } }],
    volumeMounts: [{ name, mountPath, readOnly: true }],
  };
}

const name = "zoned-workload-identity";
const namespace = "kube-system";

const { name: volume, mountPath, file: tokenFile, expirationSeconds } = tokenVolume;

/** A service account as a key of the ConfigMap, in the words of the policy. */
const account = "(request.namespace + '.' + object.spec.serviceAccountName)";

/** What each container of a list gets; what it has by the same name stays. */
const containers = (kind: string, tenantId: string, authorityHost: string): string => {
  const variable = (variableName: string, value: string): string =>
    `Object.spec.${kind}.env{name: '${variableName}', value: ${value}}`;
  const env = [
    variable("AZURE_CLIENT_ID", "variables.clientId"),
    variable("AZURE_TENANT_ID", `'${tenantId}'`),
    variable("AZURE_FEDERATED_TOKEN_FILE", `'${mountPath}/${tokenFile}'`),
    variable("AZURE_AUTHORITY_HOST", `'${authorityHost}'`),
  ];
  const mount = `Object.spec.${kind}.volumeMounts{name: '${volume}', mountPath: '${mountPath}', readOnly: true}`;
  return (
    `object.spec.${kind}.map(c, Object.spec.${kind}{name: c.name, ` +
    `env: [${env.join(", ")}].filter(e, !has(c.env) || !c.env.exists(own, own.name == e.name)), ` +
    `volumeMounts: [${mount}].filter(m, !has(c.volumeMounts) || !c.volumeMounts.exists(own, own.mountPath == m.mountPath))})`
  );
};

/**
 * The policy by which pods of declared service accounts get what Azure's libraries look for: Entra's names for
 * them, and a token of their own. It is evaluated by the API server itself; upstream's webhook would be a pod and a
 * certificate more, without which no pod starts.
 *
 * @see https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/
 * @see https://azure.github.io/azure-workload-identity/docs/topics/service-account-labels-and-annotations.html
 */
export function injectionPolicy(
  tenantId: string,
  { login, tokenAudience }: Pick<AzureCloud, "login" | "tokenAudience">,
) {
  const projected =
    `Object.spec.volumes{name: '${volume}', projected: Object.spec.volumes.projected{sources: [` +
    "Object.spec.volumes.projected.sources{serviceAccountToken: Object.spec.volumes.projected.sources.serviceAccountToken{" +
    `path: '${tokenFile}', audience: '${tokenAudience}', expirationSeconds: ${expirationSeconds}}}]}}`;
  return {
    failurePolicy: "Fail",
    // For containers that webhooks add after it; what has been added already is not added again.
    reinvocationPolicy: "IfNeeded",
    paramKind: { apiVersion: "v1", kind: "ConfigMap" },
    matchConstraints: {
      resourceRules: [
        { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] },
      ],
    },
    matchConditions: [
      {
        // What a kubelet shows of its static pods has no service account.
        name: "is-declared",
        expression: `has(params.data) && has(object.spec.serviceAccountName) && ${account} in params.data`,
      },
    ],
    variables: [{ name: "clientId", expression: `params.data[${account}]` }],
    mutations: [
      {
        patchType: "JSONPatch",
        jsonPatch: {
          // A list of sources is replaced as a whole, which the other kind of patch does not do.
          expression:
            `!has(object.spec.volumes) ? [JSONPatch{op: 'add', path: '/spec/volumes', value: [${projected}]}] : ` +
            `object.spec.volumes.exists(v, v.name == '${volume}') ? [] : ` +
            `[JSONPatch{op: 'add', path: '/spec/volumes/-', value: ${projected}}]`,
        },
      },
      ...["containers", "initContainers"].map((kind) => ({
        patchType: "ApplyConfiguration",
        applyConfiguration: {
          expression: `has(object.spec.${kind}) ? Object{spec: Object.spec{${kind}: ${containers(kind, tenantId, `https://${login}/`)}}} : Object{}`,
        },
      })),
    ],
  };
}

/** Where the policy finds the client ids of service accounts. Without that ConfigMap pods are admitted as they are. */
export const injectionBinding = {
  policyName: name,
  paramRef: { name, namespace, parameterNotFoundAction: "Allow" },
};

export interface InjectionArgs {
  readonly settings: Pick<Settings, "resourceManagerEndpoint">;
  readonly tenantId: string;
  /** Client ids by service account, as workload-identities.ts has them. */
  readonly clients: Readonly<Record<string, pulumi.Input<string>>>;
}

/** Gives pods of these service accounts what they log in to Azure with. */
export class Injection extends pulumi.ComponentResource {
  constructor(resourceName: string, args: InjectionArgs, opts?: pulumi.ComponentResourceOptions) {
    super("zoned:index:Injection", resourceName, {}, opts);
    const child = { parent: this, dependsOn: opts?.dependsOn };
    const { settings, tenantId, clients } = args;
    const spec = injectionPolicy(tenantId, azureCloudAt(settings.resourceManagerEndpoint));
    const params = new ConfigMap(
      `${resourceName}-clients`,
      { metadata: { name, namespace }, data: { ...clients } },
      child,
    );
    const policy = new MutatingAdmissionPolicy(
      `${resourceName}-policy`,
      { metadata: { name }, spec },
      child,
    );
    new MutatingAdmissionPolicyBinding(
      `${resourceName}-binding`,
      { metadata: { name }, spec: injectionBinding },
      { parent: this, dependsOn: [params, policy] },
    );
    this.registerOutputs();
  }
}
