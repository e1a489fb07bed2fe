import { chains } from "./nftables-example-chains";
import { endpointOf, type Service, services, type Version } from "./nftables-example-services";

/** `table ip kube-proxy` as nft lists it. */
export function kubeProxyTable(version: Version): string {
  const old = version === "1.29";
  const maps = [
    set(
      "map",
      "service-ips",
      "ipv4_addr . inet_proto . inet_service : verdict",
      services.flatMap(toServices),
    ),
    set(
      "map",
      "service-nodeports",
      "inet_proto . inet_service : verdict",
      services
        .filter((each) => each.nodePort !== undefined && each.backends.length > 0)
        .map((each) => `tcp . ${String(each.nodePort)} : goto external-ABCDEFGH-${each.name}`),
    ),
    set(
      "map",
      "no-endpoint-services",
      "ipv4_addr . inet_proto . inet_service : verdict",
      services.flatMap(withoutEndpoints),
    ),
    set("map", "no-endpoint-nodeports", "inet_proto . inet_service : verdict", [
      'tcp . 30001 comment "ns2/local:http" : drop',
    ]),
    set("map", "firewall-ips", "ipv4_addr . inet_proto . inet_service : verdict", [
      '5.6.7.8 . tcp . 80 comment "ns5/sticky:http" : goto firewall-ABCDEFGH-ns5/sticky/tcp/http',
    ]),
    ...(old
      ? []
      : [
          set(
            "set",
            "cluster-ips",
            "ipv4_addr",
            services.map((each) => each.clusterAddress),
          ),
          set("set", "nodeport-ips", "ipv4_addr", ["192.168.0.2"]),
        ]),
    ...services
      .filter((each) => each.affinity)
      .flatMap((each) =>
        each.backends.map(
          (one) =>
            `set affinity-${endpointOf(each, one)} {\n\t\ttype ipv4_addr\n\t\tsize 65535\n\t\tflags dynamic,timeout\n\t\ttimeout 3h\n\t}`,
        ),
      ),
  ];
  return `table ip kube-proxy {\n\tcomment "rules for kube-proxy"\n\n\t${[...maps, ...chains(version)].join("\n\n\t")}\n}\n`;
}

function set(kind: string, name: string, type: string, elements: readonly string[]): string {
  const written =
    elements.length === 0 ? "" : `\n\t\telements = { ${elements.join(",\n\t\t\t     ")} }`;
  return `${kind} ${name} {\n\t\ttype ${type}${written}\n\t}`;
}

function toServices(service: Service): string[] {
  if (service.backends.length === 0) return [];
  return [
    `${service.clusterAddress} . tcp . 80 : goto service-ABCDEFGH-${service.name}`,
    ...(service.external ?? []).map(
      (address) => `${address} . tcp . 80 : goto external-ABCDEFGH-${service.name}`,
    ),
  ];
}

function withoutEndpoints(service: Service): string[] {
  if (service.backends.length === 0) {
    return [service.clusterAddress, ...(service.external ?? [])].map(
      (address) => `${address} . tcp . 80 comment "${service.name}" : goto reject-chain`,
    );
  }
  return service.local === true
    ? (service.external ?? []).map(
        (address) => `${address} . tcp . 80 comment "${service.name}" : drop`,
      )
    : [];
}
