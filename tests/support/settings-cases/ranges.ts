import type { Cases } from "./case";

const workers = (count: number, ...others: number[]) =>
  [count, ...others].map((machines, index) => ({ name: `pool-${index}`, count: machines }));

export const rangeCases: Cases = {
  refused: [
    {
      flaw: "an address for a range",
      values: { networkCidr: "172.16.0.0" },
      says: "an IPv4 range in CIDR form",
    },
    {
      flaw: "a number above 255",
      values: { podCidr: "10.256.0.0/16" },
      says: "an IPv4 range in CIDR form",
    },
    {
      flaw: "a prefix above 32",
      values: { podCidr: "10.0.0.0/33" },
      says: "an IPv4 range in CIDR form",
    },
    {
      flaw: "a leading zero, which some read as octal",
      values: { podCidr: "010.244.0.0/16" },
      says: "an IPv4 range in CIDR form",
    },
    { flaw: "IPv6", values: { serviceCidr: "fd00::/108" }, says: "an IPv4 range in CIDR form" },
    { flaw: "no range", values: { serviceCidr: "" }, says: "serviceCidr is not set" },
    {
      flaw: "host bits",
      values: { networkCidr: "172.16.5.4/16" },
      says: "config set networkCidr 172.16.0.0/16",
    },
    {
      flaw: "host bits in the pods' range",
      values: { podCidr: "10.244.1.0/16" },
      says: "config set podCidr 10.244.0.0/16",
    },
    {
      flaw: "a network without room in its subnets",
      values: { networkCidr: "172.16.0.0/21" },
      says: "from /8 to /20",
    },
    {
      flaw: "a network wider than Azure's largest private range",
      values: { networkCidr: "64.0.0.0/7" },
      says: "from /8 to /20",
    },
    {
      flaw: "fewer /24 for pods than machines",
      values: { podCidr: "10.244.0.0/23" },
      says: "from /8 to /22, since each of 3 machines takes a /24",
    },
    {
      flaw: "a pods' range that one machine more outgrows",
      values: { podCidr: "10.244.0.0/22", workerPools: workers(4) },
      says: "each of 5 machines",
    },
    {
      flaw: "a pods' range for half of the machines",
      values: { podCidr: "10.244.0.0/17", workerPools: workers(90, 90) },
      says: "config set podCidr 10.244.0.0/16",
    },
    { flaw: "more /24 than Kubernetes counts", values: { podCidr: "64.0.0.0/7" }, says: "from /8" },
    {
      flaw: "more Services than kube-apiserver takes",
      values: { serviceCidr: "10.0.0.0/11" },
      says: "from /12 to /24",
    },
    {
      flaw: "fewer Services than a cluster needs",
      values: { serviceCidr: "10.96.0.0/25" },
      says: "from /12 to /24",
    },
    {
      flaw: "Azure's own address",
      values: { podCidr: "168.63.0.0/16" },
      says: "apart from 168.63.129.16/32",
    },
    {
      flaw: "the range of Azure's metadata",
      values: { serviceCidr: "169.254.0.0/16" },
      says: "apart from 169.254.0.0/16",
    },
    { flaw: "loopback", values: { networkCidr: "127.16.0.0/16" }, says: "apart from 127.0.0.0/8" },
    { flaw: "multicast", values: { networkCidr: "239.0.0.0/16" }, says: "apart from 224.0.0.0/3" },
    { flaw: "range zero", values: { podCidr: "0.0.0.0/8" }, says: "apart from 0.0.0.0/8" },
    {
      flaw: "pods in the network",
      values: { podCidr: "172.16.0.0/16" },
      says: 'podCidr is "172.16.0.0/16", expected a range apart from networkCidr 172.16.0.0/16',
    },
    {
      flaw: "Services around the network",
      values: { serviceCidr: "172.16.0.0/12" },
      says: "apart from networkCidr",
    },
    {
      flaw: "Services among the pods",
      values: { serviceCidr: "10.244.0.0/24" },
      says: "apart from podCidr",
    },
    {
      flaw: "a pods' range that would move into the Services'",
      values: {
        podCidr: "192.168.0.0/16",
        networkCidr: "192.168.0.0/16",
        serviceCidr: "10.240.0.0/12",
      },
      says: "config set podCidr 100.64.0.0/10",
    },
    {
      flaw: "a pool beyond its part of the subnets",
      values: { workerPools: workers(91) },
      says: "at most 90",
    },
    {
      flaw: "a pool beyond its part of one zone's subnet",
      values: { workerPools: [{ name: "workers", count: 31, zones: ["2"] }] },
      says: "at most 30, as its part of 1 subnet",
    },
    {
      flaw: "an eighth pool up to Azure's own address",
      values: { workerPools: workers(1, 1, 1, 1, 1, 1, 1, 88) },
      says: "workerPools[7].count is 88, expected at most 87",
    },
    {
      flaw: "a pool in subnets without room for one",
      values: { networkCidr: "172.16.0.0/20", workerPools: workers(1) },
      says: 'networkCidr is "172.16.0.0/20", expected a /19 or wider',
    },
    {
      flaw: "a ninth pool",
      values: { workerPools: workers(1, 1, 1, 1, 1, 1, 1, 1, 1) },
      says: "workerPools has 9 entries, expected at most 8",
    },
  ],
  accepted: [
    {
      merit: "the widest ranges",
      values: { networkCidr: "10.0.0.0/8", podCidr: "11.0.0.0/8", serviceCidr: "172.16.0.0/12" },
    },
    {
      merit: "the narrowest ranges",
      values: {
        networkCidr: "172.16.0.0/20",
        podCidr: "10.244.0.0/24",
        serviceCidr: "10.96.0.0/24",
        workerPools: [],
      },
    },
    { merit: "pods for exactly as many machines", values: { podCidr: "10.244.0.0/22" } },
    { merit: "neighbours", values: { podCidr: "10.112.0.0/16", serviceCidr: "10.96.0.0/12" } },
    {
      merit: "eight full pools",
      values: { workerPools: workers(90, 90, 90, 90, 90, 90, 90, 87), podCidr: "10.128.0.0/9" },
    },
    {
      merit: "the range of Docker's bridge, which no machine has",
      values: { networkCidr: "172.17.0.0/16" },
    },
  ],
};
