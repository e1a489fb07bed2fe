import { found, Problem } from "../problem";

const key = "sshPublicKey";
const fix = `pulumi config set ${key} -- "$(cat ~/.ssh/id_ed25519.pub)"`;
const leastRsaBits = 2048;

/** The length-prefixed strings that an OpenSSH key is made of, as far as they are whole. */
function fields(blob: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at + 4 <= blob.length;) {
    const end = at + 4 + blob.readUInt32BE(at);
    if (end > blob.length) break;
    parts.push(blob.subarray(at + 4, end));
    at = end;
  }
  return parts;
}

/** Bits of a number that is written with a leading zero byte where its first bit is set. */
const bitsOf = (modulus: Buffer): number =>
  modulus.length === 0 ? 0 : BigInt(`0x${modulus.toString("hex")}`).toString(2).length;

function flawOf(type: string, base64: string): string | undefined {
  const blob = Buffer.from(base64, "base64");
  const parts = fields(blob);
  const whole = parts.reduce((length, part) => length + 4 + part.length, 0) === blob.length;
  if (parts[0]?.toString() !== type || !whole) return "is cut short or damaged";
  if (type === "ssh-ed25519")
    return parts[1]?.length === 32 ? undefined : "is cut short or damaged";
  const bits = bitsOf(parts[2] ?? Buffer.alloc(0));
  return bits < leastRsaBits ? `is an RSA key of ${bits} bits` : undefined;
}

/**
 * What is wrong with the operator's key. It is never repeated: what was pasted may be the private
 * half.
 */
export function sshKeyProblems(text: string): Problem[] {
  const refused = (is: string, expected: string): Problem[] => [{ key, is, expected, fix }];
  const publicKey = "an OpenSSH public key, the one line of a .pub file";
  if (text === "")
    return refused(found(text), `${publicKey}, since Azure makes no machine without one`);
  if (/PRIVATE KEY/.test(text)) {
    return refused(
      "is a private key",
      `${publicKey}; the private half is now in this stack's file and perhaps in its ` +
        "history: make a new pair",
    );
  }
  const [type = "", base64 = ""] = text.trim().split(/\s+/);
  if (text.trim().includes("\n")) return refused("has more than one line", publicKey);
  if (/^(ecdsa-|sk-)/.test(type)) {
    return refused(`is of type ${type}`, "ssh-ed25519 or ssh-rsa, the types that Azure takes");
  }
  if (type !== "ssh-ed25519" && type !== "ssh-rsa") return refused("is something else", publicKey);
  const flaw = flawOf(type, base64);
  if (flaw === undefined) return [];
  return refused(
    flaw,
    type === "ssh-rsa" ? `${publicKey}, of ${leastRsaBits} bits or more as Azure wants` : publicKey,
  );
}
