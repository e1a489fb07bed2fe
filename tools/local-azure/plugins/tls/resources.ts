import { createHash } from "node:crypto";
import { isIP } from "node:net";

import { Properties } from "../protocol/values";
import {
  certificateRequest,
  derOf,
  Issued,
  Names,
  knownUses,
  newPrivateKey,
  selfSigned,
  signed,
  signingKey,
  Subject,
  Terms,
} from "../../x509";

/** A resource type of the tls package, as far as the program uses it. */
export interface Resource {
  /** Inputs by name, and what each must be. */
  readonly inputs: Readonly<Record<string, Rule>>;
  /** What the package fills in for an input that is left out, and shows as an output. */
  readonly defaults: Properties;
  /** Outputs that exist only after the resource does. */
  readonly computed: readonly string[];
  readonly secrets: readonly string[];
  create(inputs: Properties): Promise<{ readonly id: string; readonly outputs: Properties }>;
}

interface Rule {
  readonly required?: true;
  /** The type of the value in words. */
  readonly is: string;
  readonly accepts: (value: unknown) => boolean;
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const isHours = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0;

const required = (rule: Rule): Rule => ({ ...rule, required: true });
const only = (value: string | number): Rule => ({
  is: `${value}`,
  accepts: (given) => given === value,
});
const pem: Rule = { is: "a text in PEM", accepts: isText };
const flag: Rule = { is: "true or false", accepts: (value) => typeof value === "boolean" };
const hours: Rule = { is: "a whole number of hours, 0 or more", accepts: isHours };
const listOf = (is: string, accepts: (one: unknown) => boolean): Rule => ({
  is: `a list of ${is}`,
  accepts: (value) => Array.isArray(value) && value.every(accepts),
});
const uses = listOf(knownUses.join(", "), (use) => knownUses.includes(use as string));
const subject: Rule = {
  is: "an object of commonName and organization",
  accepts: (value) =>
    Object.entries(value as object).every(
      ([part, name]) => ["commonName", "organization"].includes(part) && isText(name),
    ),
};

const certificate = {
  inputs: {
    allowedUses: required(uses),
    validityPeriodHours: required(hours),
    earlyRenewalHours: hours,
    isCaCertificate: flag,
    setSubjectKeyId: flag,
  },
  defaults: { earlyRenewalHours: 0, isCaCertificate: false, setSubjectKeyId: false },
  computed: ["certPem", "validityStartTime", "validityEndTime"],
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const sha1 = (bytes: Buffer): string => createHash("sha1").update(bytes).digest("hex");

const terms = (inputs: Properties): Terms => ({
  allowedUses: inputs.allowedUses as string[],
  validityPeriodHours: Number(inputs.validityPeriodHours),
  isCaCertificate: inputs.isCaCertificate === true,
  setSubjectKeyId: inputs.setSubjectKeyId === true,
});

const issued = (
  { earlyRenewalHours, validityPeriodHours }: Properties,
  { serial, certPem, start, end }: Issued,
  algorithm: Properties,
) => ({
  id: serial,
  outputs: {
    certPem,
    validityStartTime: start.toISOString(),
    validityEndTime: end.toISOString(),
    readyForRenewal: Number(earlyRenewalHours) >= Number(validityPeriodHours),
    ...algorithm,
  },
});

export const resources: Readonly<Record<string, Resource>> = {
  PrivateKey: {
    inputs: { algorithm: required(only("RSA")), rsaBits: required(only(2048)) },
    defaults: {},
    computed: ["privateKeyPem", "publicKeyPem"],
    secrets: ["privateKeyPem"],
    create: async () => {
      const outputs = await newPrivateKey();
      return { id: sha1(derOf(outputs.publicKeyPem)), outputs };
    },
  },
  CertRequest: {
    inputs: {
      privateKeyPem: required(pem),
      subject,
      dnsNames: listOf("names", isText),
      ipAddresses: listOf("IP addresses", (one) => isText(one) && isIP(one) !== 0),
    },
    defaults: {},
    computed: ["certRequestPem", "keyAlgorithm"],
    secrets: ["privateKeyPem"],
    create: async (inputs) => {
      const key = await signingKey(text(inputs.privateKeyPem), "privateKeyPem");
      const subject = (inputs.subject ?? {}) as Subject;
      const certRequestPem = await certificateRequest(key, subject, inputs as Names);
      return {
        id: sha1(derOf(certRequestPem)),
        outputs: { certRequestPem, keyAlgorithm: "RSA" },
      };
    },
  },
  SelfSignedCert: {
    inputs: { ...certificate.inputs, privateKeyPem: required(pem), subject },
    defaults: { ...certificate.defaults, setAuthorityKeyId: false },
    computed: [...certificate.computed, "keyAlgorithm"],
    secrets: ["privateKeyPem"],
    create: async (inputs) => {
      const key = await signingKey(text(inputs.privateKeyPem), "privateKeyPem");
      const made = await selfSigned(key, (inputs.subject ?? {}) as Subject, terms(inputs));
      return issued(inputs, made, { keyAlgorithm: "RSA" });
    },
  },
  LocallySignedCert: {
    inputs: {
      ...certificate.inputs,
      caCertPem: required(pem),
      caPrivateKeyPem: required(pem),
      certRequestPem: required(pem),
    },
    defaults: certificate.defaults,
    computed: [...certificate.computed, "caKeyAlgorithm"],
    secrets: ["caPrivateKeyPem"],
    create: async (inputs) => {
      const key = await signingKey(text(inputs.caPrivateKeyPem), "caPrivateKeyPem");
      const { caCertPem, certRequestPem } = inputs;
      const made = await signed(key, text(caCertPem), text(certRequestPem), terms(inputs));
      return issued(inputs, made, { caKeyAlgorithm: "RSA" });
    },
  },
};
