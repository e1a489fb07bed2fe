import { access, type Cases, type Refused } from "../stack";

const workers = (count: number, ...others: number[]) =>
  [count, ...others].map((machines, index) => ({ name: `pool-${index}`, count: machines }));

export const rangeCases: Cases = {
  refused: [
    [{ networkCidr: "172.16.0.0" }, "an IPv4 range in CIDR form"],
    [{ podCidr: "10.256.0.0/16" }, "an IPv4 range in CIDR form"],
    [{ podCidr: "10.0.0.0/33" }, "an IPv4 range in CIDR form"],
    // Some read it as octal.
    [{ podCidr: "010.244.0.0/16" }, "an IPv4 range in CIDR form"],
    [{ serviceCidr: "fd00::/108" }, "an IPv4 range in CIDR form"],
    [{ serviceCidr: "" }, "serviceCidr is not set"],
    [{ networkCidr: "172.16.5.4/16" }, "config set networkCidr 172.16.0.0/16"],
    [{ podCidr: "10.244.1.0/16" }, "config set podCidr 10.244.0.0/16"],
    [{ networkCidr: "172.16.0.0/21" }, "from /8 to /20"],
    [{ networkCidr: "64.0.0.0/7" }, "from /8 to /20"],
    [{ podCidr: "10.244.0.0/23" }, "from /8 to /22, since each of 3 machines takes a /24"],
    [{ podCidr: "10.244.0.0/22", workerPools: workers(4) }, "each of 5 machines"],
    [
      { podCidr: "10.244.0.0/22", workerPools: workers(2, 2) },
      "at most; a cluster that exists keeps its range, which holds 4 (pulumi config set podCidr 10.244.0.0/16)",
    ],
    [
      { podCidr: "10.244.0.0/17", workerPools: workers(90, 90) },
      "config set podCidr 10.244.0.0/16",
    ],
    [{ podCidr: "64.0.0.0/7" }, "from /8"],
    [{ serviceCidr: "10.0.0.0/11" }, "from /12 to /24"],
    [{ serviceCidr: "10.96.0.0/25" }, "from /12 to /24"],
    [{ podCidr: "168.63.0.0/16" }, "apart from 168.63.129.16/32"],
    [{ serviceCidr: "169.254.0.0/16" }, "apart from 169.254.0.0/16"],
    [{ networkCidr: "127.16.0.0/16" }, "apart from 127.0.0.0/8"],
    [{ networkCidr: "239.0.0.0/16" }, "apart from 224.0.0.0/3"],
    [{ podCidr: "0.0.0.0/8" }, "apart from 0.0.0.0/8"],
    [
      { podCidr: "172.16.0.0/16" },
      'podCidr is "172.16.0.0/16", expected a range apart from networkCidr 172.16.0.0/16',
    ],
    [{ serviceCidr: "172.16.0.0/12" }, "apart from networkCidr"],
    [{ serviceCidr: "10.244.0.0/24" }, "apart from podCidr"],
    [
      {
        podCidr: "192.168.0.0/16",
        networkCidr: "192.168.0.0/16",
        serviceCidr: "10.240.0.0/12",
      },
      "config set podCidr 100.64.0.0/10",
    ],
    [{ workerPools: workers(91) }, "at most 90"],
    // podCidr is not to become wider for machines that have no room in their subnets.
    [{ workerPools: workers(300) }, "workerPools[0].count is 300, expected at most 90"],
    [
      {
        ...{ networkCidr: "100.64.0.0/10", serviceCidr: "10.128.0.0/16" },
        workerPools: workers(300),
      },
      "config set podCidr 10.0.0.0/9",
    ],
    [
      { workerPools: [{ name: "workers", count: 31, zones: ["2"] }] },
      "at most 30, as its part of 1 subnet",
    ],
    [
      { workerPools: workers(1, 1, 1, 1, 1, 1, 1, 88) },
      "workerPools[7].count is 88, expected at most 87",
    ],
    [
      { networkCidr: "172.16.0.0/20", workerPools: workers(1) },
      'networkCidr is "172.16.0.0/20", expected a /19 or wider',
    ],
    [
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
    [{ httpProxy: https }, "expected values by name"],
    [{ httpProxy: { noProxy: [".example.com"] } }, "a proxy, beside"],
    [{ httpProxy: { https: "http://proxy.example" } }, "with its port"],
    [{ httpProxy: { https: "socks5://proxy:1080" } }, "of http://"],
    [
      { httpProxy: { https: "https://proxy.example:3129" } },
      "speaks no TLS to a proxy (pulumi config set --path httpProxy.https http://proxy.example:3129)",
    ],
    [
      { httpProxy: { http: "https://proxy.example" } },
      "(pulumi config set --path httpProxy.http http://proxy.example:3128)",
    ],
    [
      { httpProxy: { https: "http://me:hush@proxy.example:3128" } },
      "httpProxy.https has a password that is readable in the stack's file, expected an encrypted value, and another password, " +
        "since this one may be in the file's history (pulumi config set --secret --path httpProxy.https)",
    ],
    ...["localhost", "127.0.0.2"].map((host): Refused => [
      { httpProxy: { https: `http://${host}:3128` } },
      `httpProxy.https leads to ${host}, expected a proxy that machines reach`,
    ]),
    [{ httpProxy: { https, nopasswd: "x" } }, "http, https, noProxy, ca"],
    [{ httpProxy: { https, noProxy: ["a, b"] } }, 'noProxy[0] is "a, b"'],
    [{ httpProxy: { https, ca: "proxy.example" } }, "certificates as PEM"],
    [
      { httpProxy: { https, ca: `${proxyCa}\n-----BEGIN PRIVATE KEY-----\nAAAA` } },
      "certificates as PEM, and nothing else",
    ],
    [
      { httpProxy: { https, ca: `${proxyCa}\n`.repeat(30) } },
      "httpProxy.ca is 17730 characters, expected at most 16000",
    ],
  ],
  accepted: [
    ["a proxy", { httpProxy: { https, http: https, noProxy: [".example.com", "10.0.0.0/8"] } }],
    ["a proxy with a CA of its own", { httpProxy: { https, ca: proxyCa } }],
    ["a proxy with many", { httpProxy: { https, ca: `${proxyCa}\n`.repeat(26) } }],
  ],
};

const field = (bytes: Buffer): Buffer => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
};

/** A key of that many bits as OpenSSH writes it. */
function rsaKey(bits: number): string {
  const modulus = Buffer.concat([Buffer.of(0), Buffer.alloc(bits / 8, 0xc5)]);
  const blob = [Buffer.from("ssh-rsa"), Buffer.of(1, 0, 1), modulus].map(field);
  return `ssh-rsa ${Buffer.concat(blob).toString("base64")} operator@example`;
}

const [type = "", base64 = ""] = String(access.sshPublicKey).split(" ");
const reused = (name: string): string => `${name} ${base64} operator@example`;
const id = "5f0b7d9e-8c1a-4a53-9d0e-2f6c3b1a7e88";

const ranges = (count: number, first: number) =>
  Array.from({ length: count }, (_, index) => `${first}.${index >> 8}.${index & 255}.0/24`);

export const accessCases: Cases = {
  refused: [
    [{ apiAccessCidrs: ranges(3901, 20) }, "apiAccessCidrs has 3901 of the 3901 ranges"],
    [
      { apiAccessCidrs: ranges(900, 20), sshAccessCidrs: ranges(3001, 20) },
      "sshAccessCidrs has 3001 of the 3901 ranges",
    ],
    ...["300.1.1.1", "1.2.3", "10.1.2.3.4", "010.1.2.3", "api.example.1", "*.1.2.3.4", "7"].map(
      (san): Refused => [{ apiExtraSans: [san] }, "expected a DNS name or an IPv4 address"],
    ),
    [{ apiAccessCidrs: [] }, "apiAccessCidrs[0] is not set"],
    [
      { apiName: "api.zoned.example" },
      'apiName is "api.zoned.example", expected nothing where apiAccess is public',
    ],
    ...["api", "API.zoned.example", "*.zoned.example", "10.1.2.3", "https://api.example"].map(
      (apiName): Refused => [{ apiAccess: "private", apiName }, "expected a DNS name"],
    ),
    [
      { apiProxy: "http://me:hush@proxy.example:3128" },
      "apiProxy holds a user's name or password, expected an address without one",
    ],
    ...["proxy.example:3128", "socks5://proxy.example", "http://proxy.example/api"].map(
      (apiProxy): Refused => [{ apiProxy }, "an HTTP proxy"],
    ),
    [{ egress: "none" }, "(pulumi config set apiAccess private)"],
    [{ apiAccessCidrs: ["203.0.113.7"] }, "config set --path 'apiAccessCidrs[0]' 203.0.113.7/32"],
    [
      { sshAccessCidrs: ["203.0.113.7/24"] },
      "config set --path 'sshAccessCidrs[0]' 203.0.113.0/24",
    ],
    [{ apiAccessCidrs: ["::/0"] }, 'apiAccessCidrs[0] is "::/0", expected an IPv4 range'],
    [{ apiAccessCidrs: ["Internet"] }, "an IPv4 range"],
    [
      { apiAccessCidrs: ["203.0.113.128/25", "203.0.113.0/24"] },
      'apiAccessCidrs[0] is "203.0.113.128/25", expected a range outside 203.0.113.0/24',
    ],
    [
      { sshAccessCidrs: ["10.0.0.0/8", "10.0.0.0/8"] },
      'sshAccessCidrs[1] is "10.0.0.0/8", expected a range outside 10.0.0.0/8',
    ],
    [{ apiExtraSans: ["https://api.example"] }, "without scheme or port"],
    [{ adminUsername: "admin" }, 'adminUsername is "admin"'],
    [{ adminUsername: "daemon" }, 'adminUsername is "daemon"'],
    ...["operator", "plugdev", "lxd"].map((adminUsername): Refused => [
      { adminUsername },
      "neither Azure nor Ubuntu has taken",
    ]),
    [{ adminUsername: "Jane Doe" }, "that Linux takes"],
    [{ sshPublicKey: "" }, "sshPublicKey is not set"],
    [
      {
        sshPublicKey:
          "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END " +
          "OPENSSH PRIVATE KEY-----",
      },
      "sshPublicKey is a private key",
    ],
    [{ sshPublicKey: "hunter2" }, "sshPublicKey is something else"],
    [
      { sshPublicKey: "ecdsa-sha2-nistp256 AAAAE2VjZHNh" },
      "sshPublicKey is of type ecdsa-sha2-nistp256",
    ],
    [{ sshPublicKey: reused("ssh-rsa") }, "is cut short or damaged"],
    [{ sshPublicKey: `${type} ${base64.slice(0, -8)}` }, "is cut short or damaged"],
    [{ sshPublicKey: type }, "is cut short or damaged"],
    [{ sshPublicKey: `${reused(type)}\n${reused(type)}` }, "has more than one line"],
    [{ sshPublicKey: rsaKey(1024) }, "sshPublicKey is an RSA key of 1024 bits"],
    [{ servicePrincipalClientId: id }, "servicePrincipalClientSecret is not set"],
    [
      { servicePrincipalClientId: id, servicePrincipalClientSecret: "hush" },
      "servicePrincipalClientSecret is readable in the stack's file",
    ],
  ],
  accepted: [
    ["a private API that nobody else was let in to", { apiAccess: "private", apiAccessCidrs: [] }],
    [
      "a private API without any way out of this program's",
      { apiAccess: "private", egress: "none" },
    ],
    [
      "a private API by a name of one's own",
      { apiAccess: "private", apiName: "api.zoned.example" },
    ],
    ["a proxy", { apiProxy: "http://proxy.example:3128" }],
    [
      "as many ranges as there is room for",
      { apiAccessCidrs: ranges(2000, 20), sshAccessCidrs: ranges(1900, 20) },
    ],
    ["an API that somebody opened to everyone", { apiAccessCidrs: ["0.0.0.0/0"] }],
    ["ranges side by side", { apiAccessCidrs: ["203.0.113.0/25", "203.0.113.128/25"] }],
    ["the same range for both", { sshAccessCidrs: ["203.0.113.0/24"] }],
    [
      "more names of the API",
      {
        apiExtraSans: ["api.example", "*.k8s.example", "10.1.2.3", "1.2.3.4.example", "api-2"],
      },
    ],
    ["a strong RSA key", { sshPublicKey: rsaKey(2048) }],
    ["a key with a comment of several words", { sshPublicKey: `${reused(type)} at work\n` }],
  ],
};
