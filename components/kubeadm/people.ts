import { digest } from "../digest";
import { isByProxy, issuerOf, prefixOf } from "../settings/logins";
import { type ProxySettings, proxyVariables, type Variable } from "../settings/proxy";
import type { Entra, Settings } from "../settings/settings";

export type PeopleSettings = Pick<Settings, "entra" | "resourceManagerEndpoint">;

/** In place of their groups, which Entra ID leaves out of the tokens of people with more than 200. */
export const tooManyGroups = "more-than-200-groups";

/**
 * The object id is a person's for ever; names change hands. The name is noted for the audit log.
 *
 * The groups are an expression, since an API server that only knows their claim takes the address in the
 * place of more than 200 for one that it can ask, and admits the person to nothing when it cannot.
 *
 * @see https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference
 */
const entraClaims = (prefix: string) => ({
  username: { claim: "oid", prefix },
  groups: {
    expression:
      `has(claims.groups) ? dyn(claims.groups).map(group, "${prefix}" + string(group)) : ` +
      `has(claims._claim_names) || has(claims.hasgroups) ? ["${prefix}${tooManyGroups}"] : []`,
  },
  extra: [
    {
      key: "login.microsoftonline.com/preferred-username",
      valueExpression: 'has(claims.preferred_username) ? claims.preferred_username : ""',
    },
  ],
});

const claims = (entra: Entra) => {
  const prefix = prefixOf(entra);
  return entra.tenant === ""
    ? {
        username: { claim: entra.usernameClaim || "sub", prefix },
        groups: { claim: entra.groupsClaim || "groups", prefix },
      }
    : entraClaims(prefix);
};

/** Whose tokens an API server admits, as a part of its AuthenticationConfiguration. */
export const jwtAuthenticators = (settings: PeopleSettings) =>
  settings.entra !== undefined && {
    jwt: [
      {
        issuer: {
          url: issuerOf(settings.entra, settings),
          audiences: [settings.entra.application],
          ...(settings.entra.ca !== "" && { certificateAuthority: settings.entra.ca }),
        },
        claimMappings: claims(settings.entra),
      },
    ],
  };

/**
 * By which an API server asks for the keys that sign these tokens. kubeadm would hand on only what it has itself. The
 * machine's authorities, of which the proxy's is one, it reads when it starts, and none of them beside the issuer's own.
 */
export function issuerVariables(
  settings: PeopleSettings & ProxySettings,
  apiName: string,
): readonly Variable[] {
  if (!isByProxy(settings)) return [];
  const ca = settings.entra?.ca === "" ? settings.httpProxy?.ca : "";
  return [
    ...proxyVariables(settings, apiName).filter(({ name }) => name !== "HTTP_PROXY"),
    ...(ca ? [{ name: "ZONED_PROXY_CA", value: digest(ca) }] : []),
  ];
}
