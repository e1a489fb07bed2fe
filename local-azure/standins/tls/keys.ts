import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  KeyObject,
  webcrypto,
} from "node:crypto";
import { promisify } from "node:util";
import { openSsh } from "./openssh";

const generate = promisify(generateKeyPair);

/** Pulumi's names of curves, and OpenSSL's. */
export const curves: Readonly<Record<string, string>> = {
  P224: "secp224r1",
  P256: "prime256v1",
  P384: "secp384r1",
  P521: "secp521r1",
};

const webCurves: Readonly<Record<string, { readonly name: string; readonly hash: string }>> = {
  prime256v1: { name: "P-256", hash: "SHA-256" },
  secp384r1: { name: "P-384", hash: "SHA-384" },
  secp521r1: { name: "P-521", hash: "SHA-512" },
};

export interface KeyArgs {
  readonly algorithm: string;
  readonly ecdsaCurve: string;
  readonly rsaBits: number;
}

async function newKey({ algorithm, ecdsaCurve, rsaBits }: KeyArgs): Promise<KeyObject> {
  switch (algorithm) {
    case "RSA":
      return (await generate("rsa", { modulusLength: rsaBits })).privateKey;
    case "ED25519":
      return (await generate("ed25519")).privateKey;
    default:
      return (await generate("ec", { namedCurve: curves[ecdsaCurve] ?? ecdsaCurve })).privateKey;
  }
}

/** The traditional format of each algorithm, which is what readers of `privateKeyPem` expect. */
function traditionalPem(key: KeyObject): string {
  switch (key.asymmetricKeyType) {
    case "rsa":
      return key.export({ type: "pkcs1", format: "pem" }).toString();
    case "ec":
      return key.export({ type: "sec1", format: "pem" }).toString();
    default:
      return key.export({ type: "pkcs8", format: "pem" }).toString();
  }
}

/** Everything that PrivateKey tells about a new key. */
export async function privateKey(args: KeyArgs) {
  const key = await newKey(args);
  const publicDer = publicKeyDer(key);
  const ssh = openSsh(key);
  return {
    id: createHash("sha1").update(publicDer).digest("hex"),
    outputs: {
      privateKeyPem: traditionalPem(key),
      privateKeyPemPkcs8: key.export({ type: "pkcs8", format: "pem" }).toString(),
      privateKeyOpenssh: ssh.privateKey,
      publicKeyPem: pem("PUBLIC KEY", publicDer),
      publicKeyOpenssh: ssh.publicKey,
      publicKeyFingerprintMd5: ssh.md5,
      publicKeyFingerprintSha256: ssh.sha256,
    },
  };
}

export function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

function publicKeyDer(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: "spki", format: "der" });
}

export interface SigningKey {
  readonly algorithm: "RSA" | "ECDSA" | "ED25519";
  readonly signature: { readonly name: string; readonly hash?: string };
  readonly pair: webcrypto.CryptoKeyPair;
}

/** A private key in any of its PEM formats, ready to sign certificates. */
export async function signingKey(privateKeyPem: string, property: string): Promise<SigningKey> {
  let key: KeyObject;
  try {
    key = createPrivateKey(privateKeyPem);
  } catch {
    // What OpenSSL says about it can quote the key.
    throw new Error(
      `${property} is not a private key in PEM: give privateKeyPem of a tls.PrivateKey`,
    );
  }
  const curve = webCurves[key.asymmetricKeyDetails?.namedCurve ?? ""];
  if (key.asymmetricKeyType === "ec" && !curve) {
    throw new Error(
      `${property} is of the curve ${key.asymmetricKeyDetails?.namedCurve}, and certificates are ` +
        `made with P256, P384 or P521 here: set ecdsaCurve of the tls.PrivateKey`,
    );
  }
  const [algorithm, parameters, signature] = (() => {
    switch (key.asymmetricKeyType) {
      case "rsa": {
        const rsa = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
        return ["RSA", rsa, rsa] as const;
      }
      case "ec":
        return [
          "ECDSA",
          { name: "ECDSA", namedCurve: curve?.name ?? "" },
          { name: "ECDSA", hash: curve?.hash ?? "" },
        ] as const;
      default:
        return ["ED25519", { name: "Ed25519" }, { name: "Ed25519" }] as const;
    }
  })();
  const load = (format: "pkcs8" | "spki", der: Buffer, use: "sign" | "verify") =>
    webcrypto.subtle.importKey(format, der, parameters, true, [use]);
  return {
    algorithm,
    signature,
    pair: {
      privateKey: await load("pkcs8", key.export({ type: "pkcs8", format: "der" }), "sign"),
      publicKey: await load("spki", publicKeyDer(key), "verify"),
    },
  };
}
