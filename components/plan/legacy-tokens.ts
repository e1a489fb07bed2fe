import { type KubernetesApi, withApi } from "../cluster/kubernetes-api";
import { isRewriting } from "../kubeadm/rotation";
import { isHealthCheckSkipped } from "../settings/times";
import type { Settings } from "../settings/settings";
import type { PreviousOutputs } from "./machine-changes";

/** Secrets with a token of a key that signs no more, as `namespace/name`; or why nobody knows. */
export type LegacyTokens = { readonly secrets: readonly string[] } | { readonly unknown: string };

interface TokenSecret {
  readonly metadata: { readonly namespace: string; readonly name: string };
  readonly data?: { readonly token?: string };
}

interface LegacyTokensArgs {
  readonly settings: Pick<Settings, "skipHealthCheckUntil">;
  readonly previous: PreviousOutputs | undefined;
  /** From the stack's outputs. */
  readonly kubeconfig: string | undefined;
  /** When this program started, as ISO 8601. */
  readonly now: string;
}

const ofType = "fieldSelector=type%3Dkubernetes.io%2Fservice-account-token";

/** By which key a token is signed, as Kubernetes names keys: by a hash. */
const keyOf = (token: string): string | undefined =>
  (JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString()) as { kid?: string }).kid;

/**
 * Tokens in Secrets never end, and the controller manager signs none anew. They are looked for only
 * where an older key is to go next, and where the API may be asked.
 */
export async function getLegacyTokens(args: LegacyTokensArgs): Promise<LegacyTokens> {
  const { settings, previous, kubeconfig, now } = args;
  const keys = previous?.serviceAccountKeys;
  const isSkipped = isHealthCheckSkipped(settings, now);
  if (keys === undefined || !isRewriting(keys) || isSkipped || kubeconfig === undefined) {
    return { secrets: [] };
  }
  return withApi(kubeconfig, signedBefore).then(
    (secrets) => ({ secrets }),
    (error: Error) => ({ unknown: error.message }),
  );
}

async function signedBefore(api: KubernetesApi): Promise<string[]> {
  const secrets = await api.list<TokenSecret>(`/api/v1/secrets?${ofType}`);
  if (secrets.length === 0) return [];
  const signing = keyOf(await newToken(api));
  return secrets
    .filter(({ data }) => {
      const token = data?.token && Buffer.from(data.token, "base64").toString();
      return token && keyOf(token) !== signing;
    })
    .map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);
}

/** Of an account that may do nothing, and for the ten minutes that are the least. */
async function newToken(api: KubernetesApi): Promise<string> {
  const answer = await api.create("/api/v1/namespaces/kube-public/serviceaccounts/default/token", {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: { expirationSeconds: 600 },
  });
  return (JSON.parse(answer) as { status: { token: string } }).status.token;
}
