import { access } from "../stack";
import type { Cases } from "./case";

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
    {
      flaw: "more ranges than a security group takes",
      values: { apiAccessCidrs: ranges(3901, 20) },
      says: "apiAccessCidrs has 3901 of the 3901 ranges",
    },
    {
      flaw: "more ranges than a security group takes, most of them for SSH",
      values: { apiAccessCidrs: ranges(900, 20), sshAccessCidrs: ranges(3001, 20) },
      says: "sshAccessCidrs has 3001 of the 3901 ranges",
    },
    ...["300.1.1.1", "1.2.3", "10.1.2.3.4", "010.1.2.3", "api.example.1", "*.1.2.3.4", "7"].map(
      (san) => ({
        flaw: `${san} for an address or a name`,
        values: { apiExtraSans: [san] },
        says: "expected a DNS name or an IPv4 address",
      }),
    ),
    {
      flaw: "an API that nobody was let in to",
      values: { apiAccessCidrs: [] },
      says: "apiAccessCidrs[0] is not set",
    },
    {
      flaw: "an address for a range",
      values: { apiAccessCidrs: ["203.0.113.7"] },
      says: "config set --path 'apiAccessCidrs[0]' 203.0.113.7/32",
    },
    {
      flaw: "host bits",
      values: { sshAccessCidrs: ["203.0.113.7/24"] },
      says: "config set --path 'sshAccessCidrs[0]' 203.0.113.0/24",
    },
    {
      flaw: "all of IPv6, which the API does not have",
      values: { apiAccessCidrs: ["::/0"] },
      says: 'apiAccessCidrs[0] is "::/0", expected an IPv4 range',
    },
    {
      flaw: "Azure's word for everywhere",
      values: { apiAccessCidrs: ["Internet"] },
      says: "an IPv4 range",
    },
    {
      flaw: "a range within another",
      values: { apiAccessCidrs: ["203.0.113.128/25", "203.0.113.0/24"] },
      says: 'apiAccessCidrs[0] is "203.0.113.128/25", expected a range outside 203.0.113.0/24',
    },
    {
      flaw: "a range twice",
      values: { sshAccessCidrs: ["10.0.0.0/8", "10.0.0.0/8"] },
      says: 'sshAccessCidrs[1] is "10.0.0.0/8", expected a range outside 10.0.0.0/8',
    },
    {
      flaw: "a scheme in a name",
      values: { apiExtraSans: ["https://api.example"] },
      says: "without scheme or port",
    },
    {
      flaw: "a user that Azure refuses",
      values: { adminUsername: "admin" },
      says: 'adminUsername is "admin"',
    },
    {
      flaw: "a user that Ubuntu has",
      values: { adminUsername: "daemon" },
      says: 'adminUsername is "daemon"',
    },
    {
      flaw: "a user that Linux does not take",
      values: { adminUsername: "Jane Doe" },
      says: "that Linux takes",
    },
    { flaw: "no key", values: { sshPublicKey: "" }, says: "sshPublicKey is not set" },
    {
      flaw: "a private key",
      values: {
        sshPublicKey:
          "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END " +
          "OPENSSH PRIVATE KEY-----",
      },
      says: "sshPublicKey is a private key",
    },
    {
      flaw: "a word for a key",
      values: { sshPublicKey: "hunter2" },
      says: "sshPublicKey is something else",
    },
    {
      flaw: "a key of a type that Azure does not take",
      values: { sshPublicKey: "ecdsa-sha2-nistp256 AAAAE2VjZHNh" },
      says: "sshPublicKey is of type ecdsa-sha2-nistp256",
    },
    {
      flaw: "a key under the name of another type",
      values: { sshPublicKey: reused("ssh-rsa") },
      says: "is cut short or damaged",
    },
    {
      flaw: "a key cut short",
      values: { sshPublicKey: `${type} ${base64.slice(0, -8)}` },
      says: "is cut short or damaged",
    },
    {
      flaw: "a key without its second half",
      values: { sshPublicKey: type },
      says: "is cut short or damaged",
    },
    {
      flaw: "two keys",
      values: { sshPublicKey: `${reused(type)}\n${reused(type)}` },
      says: "has more than one line",
    },
    {
      flaw: "a weak key",
      values: { sshPublicKey: rsaKey(1024) },
      says: "sshPublicKey is an RSA key of 1024 bits",
    },
    {
      flaw: "an application without a secret",
      values: { servicePrincipalClientId: id },
      says: "servicePrincipalClientSecret is not set",
    },
    {
      flaw: "an application's secret in clear",
      values: { servicePrincipalClientId: id, servicePrincipalClientSecret: "hush" },
      says: "servicePrincipalClientSecret is readable in the stack's file",
    },
  ],
  accepted: [
    {
      merit: "as many ranges as there is room for",
      values: { apiAccessCidrs: ranges(2000, 20), sshAccessCidrs: ranges(1900, 20) },
    },
    { merit: "an API that somebody opened to everyone", values: { apiAccessCidrs: ["0.0.0.0/0"] } },
    {
      merit: "ranges side by side",
      values: { apiAccessCidrs: ["203.0.113.0/25", "203.0.113.128/25"] },
    },
    { merit: "the same range for both", values: { sshAccessCidrs: ["203.0.113.0/24"] } },
    {
      merit: "more names of the API",
      values: {
        apiExtraSans: ["api.example", "*.k8s.example", "10.1.2.3", "1.2.3.4.example", "api-2"],
      },
    },
    { merit: "a strong RSA key", values: { sshPublicKey: rsaKey(2048) } },
    {
      merit: "a key with a comment of several words",
      values: { sshPublicKey: `${reused(type)} at work\n` },
    },
  ],
};
