import { existsSync, readFileSync } from "node:fs";

import { subscriptionPath } from "../../../local-azure/arm/resources/resource";
import {
  firewallAuthority,
  firewallLog,
  firewallLogin,
  type Passage,
} from "../../../local-azure/machines/qemu/network/firewall-process";
import { mirrorAddress } from "../../../local-azure/machines/qemu/network/namespaces";
import { firewall } from "../../../local-azure/machines/qemu/network/ruleset";
import { nextPatch } from "../../../programs/releases";
import { succeeded, unchanged } from "../../local-cloud";
import { type Claim, eventually, expectSame } from "../claim";
import type { Given, RealCluster } from "../real-cluster";
import { allReady, comesUp, everywhere } from "./nodes";
import { replacesInitialControlPlane } from "./three";
import { unchangedAfter, upgrade } from "./upgrade";

const location = "southeastasia";
const groups = `${subscriptionPath}/resourceGroups`;
const network = `${groups}/network/providers/Microsoft.Network`;
const range = "10.1.0.0/16";

/** A subnet, whose only way out is a firewall, and a resource group. */
export const landingZone = {
  resourceGroup: "platform",
  nodeSubnets: [`${network}/virtualNetworks/spoke/subnets/nodes`],
  apiAccess: "private",
  tags: { costCenter: "4711" },
  // Neither a mirror nor a NAT gateway.
  mirror: undefined,
  egress: undefined,
} as const;

const worker = { workerPools: [{ name: "workers", count: 1, size: "Standard_B2s" }] };

/** What a network team has made, and says of its firewall's proxy. */
export async function giveLandingZone(cluster: RealCluster): Promise<Given> {
  const put = (path: string, properties: object) =>
    cluster.sendToAzure("PUT", path, { location, properties });
  for (const group of ["network", "platform"]) await put(`${groups}/${group}`, {});
  const guard = `${network}/networkSecurityGroups/guard`;
  const toFirewall = `${network}/routeTables/to-firewall`;
  const operators = {
    ...{ access: "Allow", direction: "Inbound", priority: 200, protocol: "Tcp" },
    ...{ sourceAddressPrefix: "198.18.0.0/24", sourcePortRange: "*" },
    ...{ destinationAddressPrefix: "*", destinationPortRange: "6443" },
  };
  await put(guard, { securityRules: [{ name: "operators", properties: operators }] });
  const byFirewall = {
    addressPrefix: "0.0.0.0/0",
    ...{ nextHopType: "VirtualAppliance", nextHopIpAddress: firewall.address },
  };
  await put(toFirewall, { routes: [{ name: "default", properties: byFirewall }] });
  const nodes = {
    addressPrefix: "10.1.1.0/26",
    ...{ networkSecurityGroup: { id: guard }, routeTable: { id: toFirewall } },
  };
  await put(`${network}/virtualNetworks/spoke`, {
    addressSpace: { addressPrefixes: [range] },
    subnets: [{ name: "nodes", properties: nodes }],
  });
  const ca = firewallAuthority(cluster.networks);
  await eventually(60, cluster.signal, async () => {
    if (!existsSync(ca)) throw new Error("the firewall has no certificate");
  });
  const { user, password } = firewallLogin;
  const address = `http://${user}:${encodeURIComponent(password)}@${firewall.address}:${firewall.proxyPort}`;
  return {
    settings: { httpProxy: { noProxy: [range], ca: readFileSync(ca, "utf8") } },
    secrets: { "httpProxy.http": address, "httpProxy.https": address },
  };
}

/** What was asked of the firewall's proxy, and what it said. */
const passages = (cluster: RealCluster): Passage[] =>
  readFileSync(firewallLog(cluster.networks), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Passage);

const asked = (cluster: RealCluster, url: RegExp): number =>
  passages(cluster).filter((one) => one.status === 200 && url.test(one.url)).length;

export const landingZoneClaims: readonly Claim[] = [
  {
    ...comesUp,
    sentence:
      "in a subnet of others, with an API in it and a proxy with a login as its only way out, one `pulumi up` makes three control planes",
  },
  {
    sentence:
      "a machine reaches nothing by itself, and by the proxy packages and images: with the login, and by the company's CA alone",
    check: async (cluster) => {
      const machines = await cluster.names();
      await everywhere(cluster, async (name) => {
        const curl = "curl --silent --output /dev/null --write-out '%{http_code}' --max-time 10";
        const proxy = `http://${firewall.address}:${firewall.proxyPort}`;
        const registry = "https://registry.k8s.io/v2/";
        const said = await cluster.inMachine(
          name,
          `${curl} --noproxy '*' http://${mirrorAddress}/; echo
           ${curl} --proxy ${proxy} --write-out '%{http_connect}' ${registry}; echo
           set -a; . /etc/zoned/proxy.env; ${curl} ${registry}; echo
           ${curl} --capath /nowhere --cacert /etc/ssl/certs/ISRG_Root_X1.pem ${registry}; echo`,
        );
        expectSame(`answers on ${name}`, said.trim().split("\n"), ["000", "407", "200", "000"]);
      });
      const package200 = asked(cluster, /^https:\/\/pkgs\.k8s\.io\/.*\/Release\.key$/);
      const image200 = asked(cluster, /^https:\/\/registry\.k8s\.io\/v2\/kube-apiserver\//);
      if (package200 < machines.length || image200 < machines.length) {
        throw new Error(`the proxy gave ${package200} keys and ${image200} images out`);
      }
      const refused = passages(cluster).filter(({ status }) => status === 403);
      expectSame("what it refused", [...new Set(refused.map(({ url }) => url))], []);
      return `${passages(cluster).length} requests by the proxy`;
    },
  },
  {
    sentence:
      "the proxy's password is root's alone: not in customData, in no process, and in no file that others read",
    check: (cluster) =>
      everywhere(cluster, async (name) => {
        // In a file, since what looks for it is a process too.
        const word = Buffer.from(encodeURIComponent(firewallLogin.password)).toString("base64");
        const said = await cluster.inMachine(
          name,
          `umask 077; base64 --decode <<<${word} >/root/word; cd /
           cat proc/[0-9]*/cmdline 2>/dev/null | grep --text --count --file=/root/word
           grep --recursive --files-with-matches --file=/root/word var/lib/cloud var/log
           find etc usr/local var/lib/zoned -type f -perm /044 -exec grep --files-with-matches --file=/root/word {} +
           rm /root/word`,
        );
        expectSame(`where ${name} has it`, said.trim().split("\n"), ["0"]);
      }),
  },
  {
    sentence:
      "on a control plane the API's name means itself, so that it never needs the balancer to get there",
    check: async (cluster) => {
      const apiName = await cluster.apiName();
      await everywhere(cluster, async (name) => {
        const said = await cluster.inMachine(name, `getent ahostsv4 ${apiName}`);
        expectSame(`the API on ${name}`, said.split(/\s/)[0], "127.0.0.1");
      });
    },
  },
  {
    sentence: "nothing has a public address",
    check: async (cluster) => {
      const { value } = await cluster.inGroup("GET", "/Microsoft.Network/publicIPAddresses");
      expectSame("public addresses", value, []);
    },
  },
  {
    sentence: "a second `pulumi up` changes nothing",
    check: async (cluster) => unchanged(await cluster.up()),
  },
  replacesInitialControlPlane,
];

/**
 * By one control plane, since three of them and a worker are upgraded for hours where processors are
 * emulated.
 */
export const landingZonePatchClaims: readonly Claim[] = [
  {
    sentence: "a worker joins, by the private API and the proxy",
    isGround: true,
    check: async (cluster) => {
      await cluster.configure(worker);
      succeeded(await cluster.up());
      const names = await cluster.names();
      expectSame("machines", names.length, 2);
      await eventually(120, cluster.signal, () => allReady(cluster, names.length));
    },
  },
  {
    sentence: `one \`pulumi up\` upgrades both to ${nextPatch.version}, whose packages and images come by the proxy`,
    isGround: true,
    check: async (cluster) => {
      const image = new RegExp(`/v2/kube-apiserver/manifests/v${nextPatch.version}$`);
      expectSame("images of it before", asked(cluster, image), 0);
      const { said } = await upgrade(cluster, nextPatch.version, worker);
      if (asked(cluster, image) === 0) throw new Error("no image of it came by the proxy");
      return said;
    },
  },
  unchangedAfter(nextPatch.version),
];
