import { createHash } from "node:crypto";
import { Properties } from "../protocol/values";
import { certificateRequest, Issued, selfSigned, signed, Terms } from "./certificates";
import { curves, privateKey, signingKey } from "./keys";
import { knownUses, Subject } from "./vocabulary";

/** A resource type of the tls package. */
export interface Kind {
  readonly required: readonly string[];
  /** What the package fills in for an input that is left out, and shows as an output. */
  readonly defaults: Properties;
  /** Outputs that exist only after the resource does. */
  readonly made: readonly string[];
  readonly secrets: readonly string[];
  /** Inputs whose change leaves the resource as it is. */
  readonly updatable: readonly string[];
  make(inputs: Properties): Promise<{ readonly id: string; readonly outputs: Properties }>;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const texts = (value: unknown): string[] => (Array.isArray(value) ? value.map(text) : []);

const names = (inputs: Properties) => ({
  dnsNames: texts(inputs.dnsNames),
  ipAddresses: texts(inputs.ipAddresses),
  uris: texts(inputs.uris),
});

const terms = (inputs: Properties): Terms => ({
  allowedUses: texts(inputs.allowedUses),
  validityPeriodHours: Number(inputs.validityPeriodHours),
  isCaCertificate: inputs.isCaCertificate === true,
  maxPathLength: Number(inputs.maxPathLength),
  setSubjectKeyId: inputs.setSubjectKeyId === true,
});

const keyOf = (inputs: Properties, property: string) =>
  signingKey(text(inputs[property] ?? inputs[`${property}Wo`]), property);

const rfc3339 = (date: Date): string => date.toISOString().replace(".000Z", "Z");

const issued = ({ serial, certPem, start, end }: Issued, more: Properties) => ({
  id: serial,
  outputs: {
    certPem,
    validityStartTime: rfc3339(start),
    validityEndTime: rfc3339(end),
    readyForRenewal: false,
    ...more,
  },
});

const certificate = {
  defaults: {
    earlyRenewalHours: 0,
    isCaCertificate: false,
    maxPathLength: -1,
    setSubjectKeyId: false,
  },
  made: ["certPem", "validityStartTime", "validityEndTime"],
  updatable: ["earlyRenewalHours"],
};

export const kinds: Readonly<Record<string, Kind>> = {
  PrivateKey: {
    required: ["algorithm"],
    defaults: { ecdsaCurve: "P224", rsaBits: 2048 },
    made: [
      "privateKeyPem",
      "privateKeyPemPkcs8",
      "privateKeyOpenssh",
      "publicKeyPem",
      "publicKeyOpenssh",
      "publicKeyFingerprintMd5",
      "publicKeyFingerprintSha256",
    ],
    secrets: ["privateKeyPem", "privateKeyPemPkcs8", "privateKeyOpenssh"],
    updatable: [],
    make: (inputs) =>
      privateKey({
        algorithm: text(inputs.algorithm),
        ecdsaCurve: text(inputs.ecdsaCurve),
        rsaBits: Number(inputs.rsaBits),
      }),
  },
  CertRequest: {
    required: [],
    defaults: {},
    made: ["certRequestPem", "keyAlgorithm"],
    secrets: ["privateKeyPem"],
    updatable: [],
    make: async (inputs) => {
      const key = await keyOf(inputs, "privateKeyPem");
      const subject = (inputs.subject ?? {}) as Subject;
      const certRequestPem = await certificateRequest(key, subject, names(inputs));
      return {
        id: createHash("sha1").update(certRequestPem).digest("hex"),
        outputs: { certRequestPem, keyAlgorithm: key.algorithm },
      };
    },
  },
  SelfSignedCert: {
    ...certificate,
    defaults: { ...certificate.defaults, setAuthorityKeyId: false },
    made: [...certificate.made, "keyAlgorithm"],
    required: ["allowedUses", "validityPeriodHours"],
    secrets: ["privateKeyPem"],
    make: async (inputs) => {
      const key = await keyOf(inputs, "privateKeyPem");
      const subject = (inputs.subject ?? {}) as Subject;
      const setAuthorityKeyId = inputs.setAuthorityKeyId === true;
      const made = await selfSigned(key, subject, names(inputs), {
        ...terms(inputs),
        setAuthorityKeyId,
      });
      return issued(made, { keyAlgorithm: key.algorithm });
    },
  },
  LocallySignedCert: {
    ...certificate,
    made: [...certificate.made, "caKeyAlgorithm"],
    required: ["allowedUses", "validityPeriodHours", "caCertPem", "certRequestPem"],
    secrets: ["caPrivateKeyPem"],
    make: async (inputs) => {
      const key = await keyOf(inputs, "caPrivateKeyPem");
      const { caCertPem, certRequestPem } = inputs;
      const made = await signed(key, text(caCertPem), text(certRequestPem), terms(inputs));
      return issued(made, { caKeyAlgorithm: key.algorithm });
    },
  },
};

const oneOf: Readonly<Record<string, readonly string[]>> = {
  algorithm: ["RSA", "ECDSA", "ED25519"],
  ecdsaCurve: Object.keys(curves),
};

/**
 * What is wrong with a value, in words that say what would be right. Unknown values come here too.
 */
export function flawOf(property: string, value: unknown): string | undefined {
  const choices = oneOf[property];
  if (choices && !choices.includes(text(value))) {
    return `is ${JSON.stringify(value)}, and must be one of ${choices.join(", ")}`;
  }
  if (property === "allowedUses") {
    const strange = texts(value).filter((use) => !knownUses.includes(use));
    return strange.length > 0
      ? `names ${strange.join(", ")}, and a certificate can be allowed ${knownUses.join(", ")}`
      : undefined;
  }
  if (property === "validityPeriodHours" && !(Number(value) >= 0)) {
    return `is ${JSON.stringify(value)}, and must be a number of hours from 0 up`;
  }
  return undefined;
}
