import type * as pulumi from "@pulumi/pulumi";

import { isEncrypted } from "../config-secret";
import { found, Problem, toSet, toSetSecret } from "../problem";
import type { Settings } from "../settings";

const idKey = "servicePrincipalClientId";
const secretKey = "servicePrincipalClientSecret";
const guid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * The service principal of a cluster without a managed identity. The secret itself appears in no
 * message.
 */
export function readServicePrincipal(
  config: pulumi.Config,
  report: Problem[],
): Settings["servicePrincipal"] {
  const clientId = config.get(idKey) ?? "";
  const clientSecret = config.getSecret(secretKey);
  const hasSecret = (config.get(secretKey) ?? "") !== "";
  if (clientId === "" && !hasSecret) return undefined;
  if (!guid.test(clientId)) {
    report.push({
      key: idKey,
      is: clientId === "" ? found(clientId) : "is not a GUID",
      expected: "the application's client id (a GUID), since a secret and an id only work together",
      fix: toSet(idKey, "00000000-0000-0000-0000-000000000000"),
    });
  }
  if (!hasSecret) {
    report.push({
      key: secretKey,
      is: "is not set",
      expected: "the application's secret, since an id and a secret only work together",
      fix: toSetSecret(secretKey),
    });
  } else if (!isEncrypted(config, secretKey)) {
    report.push({
      key: secretKey,
      is: "is readable in the stack's file",
      expected:
        "an encrypted value, and another secret, since this one may be in the file's history",
      fix: toSetSecret(secretKey),
    });
  }
  return clientSecret && { clientId, clientSecret };
}
