import { createHash, KeyObject } from "node:crypto";

const sshString = (bytes: Buffer | string): Buffer => {
  const content = Buffer.from(bytes);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
};

/** Numbers are signed: a leading bit that is set needs a zero byte before it. */
const sshNumber = (base64url: string | undefined): Buffer => {
  const bytes = Buffer.from(base64url ?? "", "base64url");
  const start = bytes.findIndex((byte) => byte !== 0);
  const digits = bytes.subarray(Math.max(start, 0));
  return sshString((digits[0] ?? 0) > 127 ? Buffer.concat([Buffer.of(0), digits]) : digits);
};

const decode = (base64url: string | undefined): Buffer => Buffer.from(base64url ?? "", "base64url");

const curves: Readonly<Record<string, string>> = {
  "P-256": "nistp256",
  "P-384": "nistp384",
  "P-521": "nistp521",
};

interface Parts {
  readonly type: string;
  readonly publicParts: Buffer;
  readonly privateParts: Buffer;
}

/** Undefined for a curve that OpenSSH has no name for. */
function partsOf(key: KeyObject): Parts | undefined {
  if (key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "secp224r1") {
    return undefined;
  }
  const jwk = key.export({ format: "jwk" });
  if (jwk.kty === "RSA") {
    return {
      type: "ssh-rsa",
      publicParts: Buffer.concat([sshNumber(jwk.e), sshNumber(jwk.n)]),
      privateParts: Buffer.concat([jwk.n, jwk.e, jwk.d, jwk.qi, jwk.p, jwk.q].map(sshNumber)),
    };
  }
  if (jwk.kty === "OKP") {
    const point = decode(jwk.x);
    return {
      type: "ssh-ed25519",
      publicParts: sshString(point),
      privateParts: Buffer.concat([
        sshString(point),
        sshString(Buffer.concat([decode(jwk.d), point])),
      ]),
    };
  }
  const curve = curves[jwk.crv ?? ""];
  if (curve === undefined) {
    return undefined;
  }
  const point = Buffer.concat([Buffer.of(4), decode(jwk.x), decode(jwk.y)]);
  const publicParts = Buffer.concat([sshString(curve), sshString(point)]);
  return {
    type: `ecdsa-sha2-${curve}`,
    publicParts,
    privateParts: Buffer.concat([publicParts, sshNumber(jwk.d)]),
  };
}

export interface OpenSsh {
  readonly privateKey: string;
  readonly publicKey: string;
  readonly md5: string;
  readonly sha256: string;
}

/**
 * A private key in OpenSSH's own formats; all of them are empty where OpenSSH does not know the
 * curve.
 */
export function openSsh(key: KeyObject): OpenSsh {
  const parts = partsOf(key);
  if (!parts) {
    return { privateKey: "", publicKey: "", md5: "", sha256: "" };
  }
  const type = sshString(parts.type);
  const blob = Buffer.concat([type, parts.publicParts]);
  // Two equal numbers tell a reader that decryption worked; without a passphrase any will do.
  const checks = Buffer.alloc(8);
  const content = Buffer.concat([checks, type, parts.privateParts, sshString("")]);
  const padding = Buffer.from([1, 2, 3, 4, 5, 6, 7].slice(0, (8 - (content.length % 8)) % 8));
  const one = Buffer.from([0, 0, 0, 1]);
  const file = Buffer.concat([
    Buffer.from("openssh-key-v1\0"),
    sshString("none"),
    sshString("none"),
    sshString(""),
    one,
    sshString(blob),
    sshString(Buffer.concat([content, padding])),
  ]).toString("base64");
  const begin = "-----BEGIN OPENSSH PRIVATE KEY-----";
  const end = "-----END OPENSSH PRIVATE KEY-----";
  return {
    privateKey: [begin, ...(file.match(/.{1,70}/g) ?? []), end, ""].join("\n"),
    publicKey: `${parts.type} ${blob.toString("base64")}\n`,
    md5: createHash("md5")
      .update(blob)
      .digest("hex")
      .replace(/(..)(?!$)/g, "$1:"),
    sha256: `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`,
  };
}
