import { access } from "../stack";
import type { Cases, Refused } from "./case";

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
    [
      "more ranges than a security group takes",
      { apiAccessCidrs: ranges(3901, 20) },
      "apiAccessCidrs has 3901 of the 3901 ranges",
    ],
    [
      "more ranges than a security group takes, most of them for SSH",
      { apiAccessCidrs: ranges(900, 20), sshAccessCidrs: ranges(3001, 20) },
      "sshAccessCidrs has 3001 of the 3901 ranges",
    ],
    ...["300.1.1.1", "1.2.3", "10.1.2.3.4", "010.1.2.3", "api.example.1", "*.1.2.3.4", "7"].map(
      (san): Refused => [
        `${san} for an address or a name`,
        { apiExtraSans: [san] },
        "expected a DNS name or an IPv4 address",
      ],
    ),
    ["an API that nobody was let in to", { apiAccessCidrs: [] }, "apiAccessCidrs[0] is not set"],
    [
      "a name for a public API, which Azure names",
      { apiName: "api.zoned.example" },
      'apiName is "api.zoned.example", expected nothing where apiAccess is public',
    ],
    ...["api", "API.zoned.example", "*.zoned.example", "10.1.2.3", "https://api.example"].map(
      (apiName): Refused => [
        `${apiName} for the name of a private API`,
        { apiAccess: "private", apiName },
        "expected a DNS name",
      ],
    ),
    [
      "a password in a proxy's address",
      { apiProxy: "http://me:hush@proxy.example:3128" },
      "apiProxy holds a user's name or password, expected an address without one",
    ],
    ...["proxy.example:3128", "socks5://proxy.example", "http://proxy.example/api"].map(
      (apiProxy): Refused => [`${apiProxy} for a proxy`, { apiProxy }, "an HTTP proxy"],
    ),
    [
      "routes of the network's own beside a public API, whose answers would leave by them",
      { egress: "none" },
      "(pulumi config set apiAccess private)",
    ],
    [
      "an address for a range",
      { apiAccessCidrs: ["203.0.113.7"] },
      "config set --path 'apiAccessCidrs[0]' 203.0.113.7/32",
    ],
    [
      "host bits",
      { sshAccessCidrs: ["203.0.113.7/24"] },
      "config set --path 'sshAccessCidrs[0]' 203.0.113.0/24",
    ],
    [
      "all of IPv6, which the API does not have",
      { apiAccessCidrs: ["::/0"] },
      'apiAccessCidrs[0] is "::/0", expected an IPv4 range',
    ],
    ["Azure's word for everywhere", { apiAccessCidrs: ["Internet"] }, "an IPv4 range"],
    [
      "a range within another",
      { apiAccessCidrs: ["203.0.113.128/25", "203.0.113.0/24"] },
      'apiAccessCidrs[0] is "203.0.113.128/25", expected a range outside 203.0.113.0/24',
    ],
    [
      "a range twice",
      { sshAccessCidrs: ["10.0.0.0/8", "10.0.0.0/8"] },
      'sshAccessCidrs[1] is "10.0.0.0/8", expected a range outside 10.0.0.0/8',
    ],
    ["a scheme in a name", { apiExtraSans: ["https://api.example"] }, "without scheme or port"],
    ["a user that Azure refuses", { adminUsername: "admin" }, 'adminUsername is "admin"'],
    ["a user that Ubuntu has", { adminUsername: "daemon" }, 'adminUsername is "daemon"'],
    ["a user that Linux does not take", { adminUsername: "Jane Doe" }, "that Linux takes"],
    ["no key", { sshPublicKey: "" }, "sshPublicKey is not set"],
    [
      "a private key",
      {
        sshPublicKey:
          "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END " +
          "OPENSSH PRIVATE KEY-----",
      },
      "sshPublicKey is a private key",
    ],
    ["a word for a key", { sshPublicKey: "hunter2" }, "sshPublicKey is something else"],
    [
      "a key of a type that Azure does not take",
      { sshPublicKey: "ecdsa-sha2-nistp256 AAAAE2VjZHNh" },
      "sshPublicKey is of type ecdsa-sha2-nistp256",
    ],
    [
      "a key under the name of another type",
      { sshPublicKey: reused("ssh-rsa") },
      "is cut short or damaged",
    ],
    [
      "a key cut short",
      { sshPublicKey: `${type} ${base64.slice(0, -8)}` },
      "is cut short or damaged",
    ],
    ["a key without its second half", { sshPublicKey: type }, "is cut short or damaged"],
    ["two keys", { sshPublicKey: `${reused(type)}\n${reused(type)}` }, "has more than one line"],
    ["a weak key", { sshPublicKey: rsaKey(1024) }, "sshPublicKey is an RSA key of 1024 bits"],
    [
      "an application without a secret",
      { servicePrincipalClientId: id },
      "servicePrincipalClientSecret is not set",
    ],
    [
      "an application's secret in clear",
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
