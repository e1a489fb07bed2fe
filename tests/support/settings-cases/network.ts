import type { Cases } from "./case";

const workers = (count: number, ...others: number[]) =>
  [count, ...others].map((machines, index) => ({ name: `pool-${index}`, count: machines }));

export const rangeCases: Cases = {
  refused: [
    ["an address for a range", { networkCidr: "172.16.0.0" }, "an IPv4 range in CIDR form"],
    ["a number above 255", { podCidr: "10.256.0.0/16" }, "an IPv4 range in CIDR form"],
    ["a prefix above 32", { podCidr: "10.0.0.0/33" }, "an IPv4 range in CIDR form"],
    [
      "a leading zero, which some read as octal",
      { podCidr: "010.244.0.0/16" },
      "an IPv4 range in CIDR form",
    ],
    ["IPv6", { serviceCidr: "fd00::/108" }, "an IPv4 range in CIDR form"],
    ["no range", { serviceCidr: "" }, "serviceCidr is not set"],
    ["host bits", { networkCidr: "172.16.5.4/16" }, "config set networkCidr 172.16.0.0/16"],
    [
      "host bits in the pods' range",
      { podCidr: "10.244.1.0/16" },
      "config set podCidr 10.244.0.0/16",
    ],
    ["a network without room in its subnets", { networkCidr: "172.16.0.0/21" }, "from /8 to /20"],
    [
      "a network wider than Azure's largest private range",
      { networkCidr: "64.0.0.0/7" },
      "from /8 to /20",
    ],
    [
      "fewer /24 for pods than machines",
      { podCidr: "10.244.0.0/23" },
      "from /8 to /22, since each of 3 machines takes a /24",
    ],
    [
      "a pods' range that one machine more outgrows",
      { podCidr: "10.244.0.0/22", workerPools: workers(4) },
      "each of 5 machines",
    ],
    [
      "a pods' range for half of the machines",
      { podCidr: "10.244.0.0/17", workerPools: workers(90, 90) },
      "config set podCidr 10.244.0.0/16",
    ],
    ["more /24 than Kubernetes counts", { podCidr: "64.0.0.0/7" }, "from /8"],
    ["more Services than kube-apiserver takes", { serviceCidr: "10.0.0.0/11" }, "from /12 to /24"],
    ["fewer Services than a cluster needs", { serviceCidr: "10.96.0.0/25" }, "from /12 to /24"],
    ["Azure's own address", { podCidr: "168.63.0.0/16" }, "apart from 168.63.129.16/32"],
    [
      "the range of Azure's metadata",
      { serviceCidr: "169.254.0.0/16" },
      "apart from 169.254.0.0/16",
    ],
    ["loopback", { networkCidr: "127.16.0.0/16" }, "apart from 127.0.0.0/8"],
    ["multicast", { networkCidr: "239.0.0.0/16" }, "apart from 224.0.0.0/3"],
    ["range zero", { podCidr: "0.0.0.0/8" }, "apart from 0.0.0.0/8"],
    [
      "pods in the network",
      { podCidr: "172.16.0.0/16" },
      'podCidr is "172.16.0.0/16", expected a range apart from networkCidr 172.16.0.0/16',
    ],
    ["Services around the network", { serviceCidr: "172.16.0.0/12" }, "apart from networkCidr"],
    ["Services among the pods", { serviceCidr: "10.244.0.0/24" }, "apart from podCidr"],
    [
      "a pods' range that would move into the Services'",
      {
        podCidr: "192.168.0.0/16",
        networkCidr: "192.168.0.0/16",
        serviceCidr: "10.240.0.0/12",
      },
      "config set podCidr 100.64.0.0/10",
    ],
    ["a pool beyond its part of the subnets", { workerPools: workers(91) }, "at most 90"],
    [
      "a pool beyond its part of one zone's subnet",
      { workerPools: [{ name: "workers", count: 31, zones: ["2"] }] },
      "at most 30, as its part of 1 subnet",
    ],
    [
      "an eighth pool up to Azure's own address",
      { workerPools: workers(1, 1, 1, 1, 1, 1, 1, 88) },
      "workerPools[7].count is 88, expected at most 87",
    ],
    [
      "a pool in subnets without room for one",
      { networkCidr: "172.16.0.0/20", workerPools: workers(1) },
      'networkCidr is "172.16.0.0/20", expected a /19 or wider',
    ],
    [
      "a ninth pool",
      { workerPools: workers(1, 1, 1, 1, 1, 1, 1, 1, 1) },
      "workerPools has 9 entries, expected at most 8",
    ],
  ],
  accepted: [
    [
      "the widest ranges",
      { networkCidr: "10.0.0.0/8", podCidr: "11.0.0.0/8", serviceCidr: "172.16.0.0/12" },
    ],
    [
      "the narrowest ranges",
      {
        networkCidr: "172.16.0.0/20",
        podCidr: "10.244.0.0/24",
        serviceCidr: "10.96.0.0/24",
        workerPools: [],
      },
    ],
    ["pods for exactly as many machines", { podCidr: "10.244.0.0/22" }],
    ["neighbours", { podCidr: "10.112.0.0/16", serviceCidr: "10.96.0.0/12" }],
    [
      "eight full pools",
      { workerPools: workers(90, 90, 90, 90, 90, 90, 90, 87), podCidr: "10.128.0.0/9" },
    ],
    ["the range of Docker's bridge, which no machine has", { networkCidr: "172.17.0.0/16" }],
  ],
};

const https = "http://proxy.example:3128";

/** Of a CA that has no key any more. */
export const proxyCa = [
  "-----BEGIN CERTIFICATE-----",
  "MIIBiDCCAS2gAwIBAgIUeuGh1uyYmY4XVNZacSGejGbOSUcwCgYIKoZIzj0EAwIw",
  "GDEWMBQGA1UEAwwNRXhhbXBsZSBwcm94eTAgFw0yNjExMjcwMzE2MzlaGA8yMTI2",
  "MTEwMzAzMTYzOVowGDEWMBQGA1UEAwwNRXhhbXBsZSBwcm94eTBZMBMGByqGSM49",
  "AgEGCCqGSM49AwEHA0IABE8H0GTfnO6aM8zqAtQKq0cGEnuWrE2WL0OECDmGhuZH",
  "OA1SOvG+kMQSmyLjqxiJVLOuRGJcMTkmgCDJtOdoAzSjUzBRMB0GA1UdDgQWBBRb",
  "sEPbJc2CI14W67lQFv0mmT0nhTAfBgNVHSMEGDAWgBRbsEPbJc2CI14W67lQFv0m",
  "mT0nhTAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQCHLXWNbD6S",
  "Pg4LvIhBQEHraQKcqxlgev3R9N/KRDjO1wIhAL1NdSbhumhTjEugVHDy4PELt4EI",
  "IBulznuzE6hNKCCz",
  "-----END CERTIFICATE-----",
].join("\n");

export const httpProxyCases: Cases = {
  refused: [
    ["a proxy that is no map", { httpProxy: https }, "expected values by name"],
    ["a proxy without an address", { httpProxy: { noProxy: [".example.com"] } }, "a proxy, beside"],
    ["a proxy without a port", { httpProxy: { https: "http://proxy.example" } }, "with its port"],
    ["a proxy of another kind", { httpProxy: { https: "socks5://proxy:1080" } }, "of http://"],
    [
      "a proxy that wants TLS to itself",
      { httpProxy: { https: "https://proxy.example:3129" } },
      "speaks no TLS to a proxy (pulumi config set --path httpProxy.https http://proxy.example:3129)",
    ],
    [
      "TLS to a proxy without its port",
      { httpProxy: { http: "https://proxy.example" } },
      "(pulumi config set --path httpProxy.http http://proxy.example:3128)",
    ],
    [
      "a password in clear",
      { httpProxy: { https: "http://me:hush@proxy.example:3128" } },
      "httpProxy.https has a password that is readable in the stack's file, expected an encrypted value, and another password, " +
        "since this one may be in the file's history (pulumi config set --secret --path httpProxy.https)",
    ],
    [
      "a name that nobody reads",
      { httpProxy: { https, nopasswd: "x" } },
      "http, https, noProxy, ca",
    ],
    ["two names in one", { httpProxy: { https, noProxy: ["a, b"] } }, 'noProxy[0] is "a, b"'],
    ["a CA that is none", { httpProxy: { https, ca: "proxy.example" } }, "certificates as PEM"],
    [
      "a CA with its key, without telling it",
      { httpProxy: { https, ca: `${proxyCa}\n-----BEGIN PRIVATE KEY-----\nAAAA` } },
      "certificates as PEM, and nothing else",
    ],
  ],
  accepted: [
    ["a proxy", { httpProxy: { https, http: https, noProxy: [".example.com", "10.0.0.0/8"] } }],
    ["a proxy with a CA of its own", { httpProxy: { https, ca: proxyCa } }],
  ],
};
