import { found, Problem, toSet, wants } from "../problem";
import { hasLogin, withoutLogin } from "../proxy";
import type { Settings } from "../settings";

const label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
const dnsName = new RegExp(`^(?=.{1,253}$)(${label}\\.)+${label}$`);

function nameProblems({ apiAccess, apiName }: Settings): Problem[] {
  if (apiName === "") return [];
  const wrong = (expected: string): Problem[] => [wants("apiName", apiName, expected, "")];
  if (apiAccess === "public") {
    return wrong(
      "nothing where apiAccess is public, since a public address has a name of Azure's; " +
        "another name for it belongs into apiExtraSans",
    );
  }
  return dnsName.test(apiName) && !/\.\d+$/.test(apiName)
    ? []
    : wrong(
        "a DNS name of lower-case letters, digits and -, such as api.zoned.example, or nothing",
      );
}

function proxyProblems({ apiProxy }: Settings): Problem[] {
  if (apiProxy === "") return [];
  if (hasLogin(apiProxy)) {
    return [
      {
        key: "apiProxy",
        is: "holds a user's name or password",
        expected: "an address without one, since the stack's file is no place for secrets",
        fix: toSet("apiProxy", withoutLogin(apiProxy)),
      },
    ];
  }
  if (URL.canParse(apiProxy) && /^https?:\/\/[\w.-]+(:\d+)?\/?$/.test(apiProxy)) return [];
  return [
    wants(
      "apiProxy",
      apiProxy,
      "the address of an HTTP proxy, as http:// or https:// with a host and a port, or nothing",
      "",
    ),
  ];
}

/**
 * A connection from the internet comes in by the balancer, and its answer would leave by the firewall
 * that the routes lead to, which has never seen it begin. In subnets of others their routes are looked at.
 */
const egressProblems = ({ apiAccess, egress, nodeSubnets }: Settings): Problem[] =>
  apiAccess === "public" && egress === "none" && nodeSubnets.length === 0
    ? [
        {
          key: "egress",
          is: found(egress),
          expected:
            "zonal or single beside a public API, since its answers would leave by the network's own routes, " +
            "to a firewall that has not seen the connection begin",
          fix: toSet("apiAccess", "private"),
        },
      ]
    : [];

/** What is wrong with the way to the API. */
export const apiProblems = (settings: Settings): Problem[] => [
  ...nameProblems(settings),
  ...proxyProblems(settings),
  ...egressProblems(settings),
];
