import { account } from "../arm/resources/resource";

/** A managed identity that a machine has. */
export interface MachineIdentity {
  readonly resourceId: string;
  readonly clientId: string;
  readonly principalId: string;
}

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

const refuse = (description: string, error = "invalid_request"): Reply => ({
  status: 400,
  body: { error, error_description: description },
});

const lifeSeconds = 86_400;

/** What tokens can be for: Azure's own interfaces, blobs, keys, and registries. */
const audiences =
  /^https:\/\/(management\.azure\.com|management\.core\.windows\.net|storage\.azure\.com|[a-z0-9]{3,24}\.blob\.core\.windows\.net|vault\.azure\.net|containerregistry\.azure\.net)\/?$/;

/** The token of one of a machine's identities, as the metadata service issues it. */
export function issueToken(
  query: URLSearchParams,
  identities: readonly MachineIdentity[],
  now = new Date(),
): Reply {
  const missing = ["api-version", "resource"].find((name) => !query.get(name));
  if (missing !== undefined) return refuse(`Required query variable '${missing}' is missing`);
  const wanted = (
    [
      ["client_id", "clientId"],
      ["object_id", "principalId"],
      ["mi_res_id", "resourceId"],
      ["msi_res_id", "resourceId"],
    ] as const
  ).flatMap(([parameter, property]) => {
    const value = query.get(parameter)?.toLowerCase();
    return value === undefined ? [] : [{ property, value }];
  });
  const found = identities.filter((one) =>
    wanted.every(({ property, value }) => one[property].toLowerCase() === value),
  );
  const [identity] = found;
  if (identity === undefined) return refuse("Identity not found");
  if (found.length > 1) {
    return refuse(
      "Multiple user assigned identities exist, please specify the clientId / resourceId of the identity in the token request",
    );
  }
  const resource = query.get("resource") ?? "";
  const token = identityToken(identity, resource, now);
  if (token === undefined) {
    return refuse(
      `AADSTS500011: The resource principal named ${resource} was not found in the tenant named ${account.tenantId}.`,
      "invalid_resource",
    );
  }
  const from = Math.floor(now.getTime() / 1000);
  return {
    status: 200,
    body: {
      access_token: token.text,
      client_id: identity.clientId,
      expires_in: String(token.seconds),
      expires_on: String(from + lifeSeconds),
      ext_expires_in: String(token.seconds),
      not_before: String(from),
      resource,
      token_type: "Bearer",
    },
  };
}

/** The token of a managed identity for a resource; undefined for one that the tenant does not know. */
export const identityToken = (
  { clientId, principalId, resourceId }: MachineIdentity,
  resource: string,
  now: Date,
) =>
  audiences.test(resource)
    ? {
        seconds: lifeSeconds - 1,
        text: tokenFor(
          { appid: clientId, oid: principalId, xms_mirid: resourceId },
          resource,
          Math.floor(now.getTime() / 1000),
        ),
      }
    : undefined;

/** The token of who has logged in here, for Resource Manager unless it is for another service. */
export const loginToken = (resource = "https://management.azure.com", now = new Date()): string =>
  tokenFor(
    { appid: account.clientId, oid: account.objectId },
    resource,
    Math.floor(now.getTime() / 1000),
  );

const tokenFor = (
  bearer: { readonly appid: string; readonly oid: string; readonly xms_mirid?: string },
  resource: string,
  from: number,
): string =>
  unsignedToken({
    aud: resource,
    iss: `https://sts.windows.net/${account.tenantId}/`,
    iat: from,
    nbf: from,
    exp: from + lifeSeconds,
    ...bearer,
    sub: bearer.oid,
    tid: account.tenantId,
  });

/** Clients read a token's claims, and so do Resource Manager and the Blob service. */
function unsignedToken(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ typ: "JWT", alg: "none" })}.${part(claims)}.`;
}

interface Claims {
  readonly aud?: string;
  readonly exp?: number;
  readonly nbf?: number;
  readonly appid?: string;
  readonly oid?: string;
  readonly tid?: string;
}

/** What a token says of its bearer; undefined for what is none. */
export function claimsOf(token: string): Claims | undefined {
  try {
    return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Claims;
  } catch {
    return undefined;
  }
}
