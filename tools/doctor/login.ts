import { type Check, type Expected, problemIf } from "./check";

/** What the API server that answered says of whose tokens people log in by. */
export interface IssuerState {
  /** When it got the issuer's keys, in seconds; undefined where it has none, or needed none yet. */
  readonly keysAt?: number;
  /** When it asked for them in vain. */
  readonly failedAt?: number;
  /** How many of the issuer's tokens it has not admitted. */
  readonly refused: number;
}

const metrics = "apiserver_authentication_jwt_authenticator_";

/** By the metrics of an API server. */
export function issuerIn(text: string): IssuerState {
  const valueOf = (name: string, result: string): number | undefined => {
    const line = new RegExp(`^${metrics}${name}\\{.*result="${result}".*\\} (\\S+)$`, "m");
    const [, value] = line.exec(text) ?? [];
    return value === undefined ? undefined : Number(value);
  };
  return {
    keysAt: valueOf("jwks_fetch_last_timestamp_seconds", "success"),
    failedAt: valueOf("jwks_fetch_last_timestamp_seconds", "failure"),
    refused: valueOf("latency_seconds_count", "failure") ?? 0,
  };
}

/** Whether people can log in, by an API server that has their issuer's keys. */
export function login(issuer: string, { keysAt, failedAt = 0, refused }: IssuerState): Check {
  const time = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 19);
  const flaw =
    failedAt > (keysAt ?? 0)
      ? `the API server that answered has asked ${issuer} in vain for its keys, at ${time(failedAt)}Z`
      : keysAt === undefined && refused > 0
        ? `the API server that answered has refused ${refused} tokens, and has never had the keys of ${issuer}`
        : undefined;
  return {
    name: "login of people",
    saw:
      keysAt === undefined ? "" : `the API server has the keys of ${issuer}, of ${time(keysAt)}Z`,
    notAsked:
      flaw === undefined && keysAt === undefined
        ? `nobody has logged in since the API server that answered has started, which asks ${issuer} for its keys then`
        : undefined,
    problems: problemIf(flaw !== undefined, {
      saw: flaw ?? "",
      fix:
        `see if control planes reach ${new URL(issuer).host} (docs/firewall.md), and what the log of kube-apiserver ` +
        "says of oidc; until then the output kubeconfig is the way in",
    }),
  };
}

/** The way in that is left when nobody can. */
export const wayIn = ({ issuer }: Expected): string =>
  issuer === undefined ? "" : `, the way in when ${issuer} does not answer`;
