import { unchanged, succeeded } from "../../local-cloud";
import { type Claim, eventually, expectAll, expectSame } from "../claim";
import { echoes, inPod, namespace } from "./pods";

const metadata = "169.254.169.254";
const wire = "168.63.129.16";

/** Lets machines reach the API, at the address that their NAT gateway gives them. */
export const apiRule =
  "/Microsoft.Network/networkSecurityGroups/zoned-machines-nsg/securityRules/nodes-reach-the-api-through-their-egress";

/** A Service of a tenant's own that leads to the platform. */
const detour = [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "detour", namespace },
    spec: { ports: [{ port: 80 }] },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "detour", namespace, labels: { "kubernetes.io/service-name": "detour" } },
    addressType: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ addresses: [wire], conditions: { ready: true } }],
  },
];

const opens = (host: string, port: number): string =>
  `nc -w 10 ${host} ${port} </dev/null >/dev/null 2>&1 && echo open || echo closed`;

/**
 * What a key looks like, and a bootstrap token; a question for it, which is logged, looks
 * otherwise.
 */
const secret = "PRIVATE[ ]KEY|(^|[^a-z0-9])[a-z0-9]{6}[.][a-z0-9]{16}([^a-z0-9]|$)";

export const closedClaims: readonly Claim[] = [
  {
    sentence: "machines reach the metadata address and the platform's, and no pod does",
    check: async (cluster) => {
      for (const pod of await echoes(cluster)) {
        for (const [host, port] of [
          [metadata, 80],
          [wire, 80],
          [wire, 32526],
        ] as const) {
          const open = `timeout 10 bash -c '</dev/tcp/${host}/${port}' && echo open`;
          const asMachine = await cluster.inMachine(pod.spec.nodeName, open);
          expectSame(`${host} port ${port} from ${pod.spec.nodeName}`, asMachine.trim(), "open");
          const asPod = await inPod(cluster, pod, opens(host, port));
          expectSame(`${host} port ${port} from a pod there`, asPod.trim(), "closed");
        }
      }
    },
  },
  {
    sentence: "no pod reaches the platform through a Service that it makes for that",
    check: async (cluster) => {
      await cluster.apply(...detour);
      const [pod] = await echoes(cluster);
      const [{ spec }] = (await cluster.get<{ spec: { clusterIP: string } }>(
        ...["services", "--namespace", namespace, "--field-selector", "metadata.name=detour"],
      )) as [{ spec: { clusterIP: string } }];
      await eventually(240, cluster.signal, async () => {
        const table = await cluster.inMachine(pod!.spec.nodeName, "ipvsadm -Ln");
        expectAll("IPVS", table.split(/\s+/), [`${spec.clusterIP}:80`, `${wire}:80`]);
      });
      expectSame(
        "the Service",
        (await inPod(cluster, pod!, opens(spec.clusterIP, 80))).trim(),
        "closed",
      );
      await cluster.kubectl([
        "delete",
        "service,endpointslice",
        "detour",
        "--namespace",
        namespace,
      ]);
    },
  },
  {
    sentence: "names still resolve for pods at the platform's port 53",
    check: async (cluster) => {
      const [pod] = await echoes(cluster);
      await inPod(cluster, pod!, `nslookup ${await cluster.apiName()} ${wire}`);
    },
  },
  {
    sentence: "a machine's packets to the API's public address arrive from its NAT gateway's",
    check: async (cluster) => {
      const { properties } = await cluster.inGroup(
        "GET",
        "/Microsoft.Network/publicIPAddresses/zoned-machines-egress",
      );
      const [server = ""] = await cluster.names("control-plane");
      await eventually(240, cluster.signal, async () => {
        const text = await cluster.inMachine(
          server,
          "ss -Htn state established '( sport = :6443 )'",
        );
        const peers = text.split("\n").map(
          (line) =>
            line
              .trim()
              .split(/\s+/)[3]
              ?.replace(/^\[?(::ffff:)?/, "")
              .replace(/\]?:\d+$/, "") ?? "",
        );
        expectAll("who is connected to the API server", peers, [properties.ipAddress as string]);
      });
    },
  },
  {
    sentence:
      "the rule for that address is what lets machines reach the API: without it they do not, and `up --refresh` brings it back",
    check: async (cluster) => {
      const [worker = ""] = await cluster.names("worker");
      const ask = `curl -sk -o /dev/null -w '%{http_code}' --max-time 20 https://${await cluster.apiName()}:6443/readyz || true`;
      expectSame("with the rule", (await cluster.inMachine(worker, ask)).trim(), "200");
      await cluster.inGroup("DELETE", apiRule);
      const without = await cluster.inMachine(worker, ask);
      succeeded(await cluster.up("--refresh"));
      expectSame("without the rule", without.trim(), "000");
      expectSame("with the rule again", (await cluster.inMachine(worker, ask)).trim(), "200");
    },
  },
  {
    sentence:
      "a worker has no CA key, and no secret in what cloud-init keeps or in its process list",
    check: async (cluster) => {
      for (const worker of await cluster.names("worker")) {
        const keys = await cluster.inMachine(
          worker,
          "find /etc/kubernetes /etc/zoned -name '*ca.key' -o -name discovery.conf",
        );
        expectSame(`keys of ${worker}`, keys.trim(), "");
        const control = await cluster.inMachine(
          worker,
          `grep -rlE '${secret}' /var/lib/kubelet/pki`,
        );
        if (control.trim() === "") throw new Error("the search finds no secret where there is one");
        const places = "/var/lib/cloud /run/cloud-init /var/log /var/lib/waagent";
        const found = await cluster.inMachine(worker, `grep -rlE '${secret}' ${places} || true`);
        expectSame(`secrets of ${worker}`, found.trim(), "");
        const shown = await cluster.inMachine(
          worker,
          `ps -ewwo args | grep -v grep | grep -E '${secret}' || true`,
        );
        expectSame(`process list of ${worker}`, shown.trim(), "");
      }
    },
  },
  {
    sentence: "a second `pulumi up` changes nothing",
    check: async (cluster) => unchanged(await cluster.up()),
  },
];
