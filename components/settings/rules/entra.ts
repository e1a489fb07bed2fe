import { isByProxy, issuerOf } from "../logins";
import { type Problem, findings, toRemove, toSet, wants } from "../problem";
import { hasLogin } from "../proxy";
import type { Entra, Settings } from "../settings";
import { authorityProblem } from "./http-proxy";

const example = "00000000-0000-0000-0000-000000000000";
const guid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Tokens are compared letter by letter, and have ids in lower case. */
const idProblem = (key: string, value: string, what: string): Problem | false =>
  !guid.test(value) &&
  wants(
    key,
    value,
    `${what}, in lower case as tokens have it`,
    guid.test(value.toLowerCase()) ? value.toLowerCase() : example,
  );

const tenantProblems = ({ tenant, application, admins, ...entra }: Entra): (Problem | false)[] => [
  idProblem("entra.tenant", tenant, "the tenant's id, since tokens name the tenant by it"),
  idProblem("entra.application", application, "the client id of an application in that tenant"),
  ...admins.map((group, index) =>
    idProblem(`entra.admins[${index}]`, group, "the object id of a group"),
  ),
  ...(["usernameClaim", "groupsClaim", "ca"] as const).map(
    (name) =>
      entra[name] !== "" && {
        key: `entra.${name}`,
        is: "is set beside entra.tenant",
        expected: "nothing, since Entra ID's claims and certificates are known",
        fix: toRemove(`entra.${name}`),
      },
  ),
];

/** API servers and the login end at once with an address that is none, and the names of the cluster are unknown to both. */
function isIssuer(issuer: string): boolean {
  if (!/^https:\/\/[^\s?#@]+$/.test(issuer) || !URL.canParse(issuer)) return false;
  return !/\.(svc|cluster\.local)$/.test(new URL(issuer).hostname);
}

const issuerProblems = (entra: Entra, { kubeadm }: Settings): (Problem | false)[] => [
  (!isIssuer(entra.issuer) ||
    entra.issuer === kubeadm.apiServerExtraArgs["service-account-issuer"]) &&
    wants(
      "entra.issuer",
      entra.issuer,
      "the https address that the issuer's tokens have as iss, in DNS outside the cluster, and not the one of service accounts",
      "https://login.example.org",
    ),
  !/^\S+$/.test(entra.application) &&
    wants(
      "entra.application",
      entra.application,
      "the client id that the issuer's tokens have as aud",
      "kubernetes",
    ),
  ...entra.admins.map(
    (group, index) =>
      group.trim() === "" &&
      wants(`entra.admins[${index}]`, group, "the name of a group, as tokens have it", "admins"),
  ),
  entra.ca !== "" && authorityProblem("entra.ca", entra.ca),
];

/** An API server has its proxy as a variable, which all may read who may see its pod or kubeadm's configuration. */
function proxyProblem(entra: Entra, settings: Settings): Problem | false {
  const { httpProxy } = settings;
  if (httpProxy === undefined || !hasLogin(httpProxy.https) || !isByProxy(settings)) return false;
  const { hostname } = new URL(issuerOf(entra, settings));
  return {
    key: "entra",
    is: "is set beside a proxy with a password",
    expected:
      `${hostname} in httpProxy.noProxy, and a way there without the proxy, or a proxy without a password: API servers ask ` +
      "it for its keys, and the password would be readable in their pods",
    fix: toSet(`httpProxy.noProxy[${httpProxy.noProxy.length}]`, hostname),
  };
}

/** What is wrong with whose tokens people log in by. */
export function entraProblems(settings: Settings): Problem[] {
  const { entra, kubeadm } = settings;
  if (entra === undefined) return [];
  const isOther = entra.issuer !== "";
  const flags = Object.keys(kubeadm.apiServerExtraArgs).filter((flag) => flag.startsWith("oidc-"));
  return findings(
    isOther &&
      entra.tenant !== "" && {
        key: "entra.issuer",
        is: "is set beside entra.tenant",
        expected: "one of the two, since people have one kubeconfig",
        fix: toRemove("entra.issuer"),
      },
    ...(isOther && entra.tenant === "" ? issuerProblems(entra, settings) : tenantProblems(entra)),
    flags.length > 0 && {
      key: "entra",
      is: `is set beside ${flags.join(", ")} of kubeadm.apiServerExtraArgs`,
      expected: "one of the two, since an API server does not start with both",
      fix: toRemove("entra"),
    },
    proxyProblem(entra, settings),
  );
}
