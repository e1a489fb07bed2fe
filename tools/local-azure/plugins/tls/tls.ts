import { readFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { isIP } from "node:net";

import {
  changesBetween,
  CheckRequest,
  CheckResult,
  DiffResult,
  Plugin,
  ResourceProvider,
  Served,
} from "../protocol/protocol";
import { type Around, serve } from "../protocol/serve";
import { hasUnknown, Properties, secret, unknown, Value } from "../protocol/values";
import {
  certificateRequest,
  derOf,
  Issued,
  knownUses,
  Names,
  newPrivateKey,
  selfSigned,
  signed,
  signingKey,
  Subject,
  Terms,
} from "../../x509";

/** A resource type of the tls package, as far as the program uses it. */
interface Resource {
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

const resources: Readonly<Record<string, Resource>> = {
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

const hour = 3_600_000;

/** Stands in for the `tls` plugin where the official one cannot be installed. */
export const serveTls = (port: number, around?: Around): Promise<Served> =>
  serve(plugin, port, around);

const { version } = JSON.parse(
  readFileSync(require.resolve("@pulumi/tls/package.json"), "utf8"),
) as { readonly version: string };

const plugin: Plugin = { version, connect: () => provider };

function resourceOf(type: string): Resource {
  const resource = resources[type.split(":").at(-1) ?? ""];
  if (!resource) {
    throw new Error(
      `${type} is not supported by this stand-in for the tls plugin; it supports ` +
        Object.keys(resources).join(", "),
    );
  }
  return resource;
}

function check({ type, news }: CheckRequest): CheckResult {
  const { inputs, secrets } = resourceOf(type);
  const problemOf = (property: string, value: Value): string => {
    const rule = inputs[property];
    if (!rule) {
      return (
        `${property} is not supported by this stand-in for the tls plugin; it supports ` +
        Object.keys(inputs).join(", ")
      );
    }
    return secrets.includes(property)
      ? `${property} is not what is expected: ${rule.is}`
      : `${property} is ${JSON.stringify(value)}, expected ${rule.is}`;
  };
  const missing = Object.entries(inputs)
    .filter(([property, { required }]) => required && news[property] === undefined)
    .map(([property, { is }]) => ({ property, reason: `${property} is required: ${is}` }));
  const wrong = Object.entries(news)
    .filter(([property, value]) => !hasUnknown(value) && !inputs[property]?.accepts(value))
    .map(([property, value]) => ({ property, reason: problemOf(property, value) }));
  return { inputs: news, failures: [...missing, ...wrong] };
}

/** From this time on a certificate is planned anew, without any change of its inputs. */
function isReadyForRenewal(
  { validityEndTime }: Properties,
  { earlyRenewalHours }: Properties,
): boolean {
  const renewal = Date.parse(String(validityEndTime)) - Number(earlyRenewalHours ?? 0) * hour;
  return Date.now() >= renewal;
}

function diff(
  resource: Resource,
  olds: Properties,
  news: Properties,
  state: Properties,
): DiffResult {
  const before = { ...resource.defaults, ...olds };
  const after = { ...resource.defaults, ...news };
  const changes = Object.keys({ ...before, ...after }).flatMap((path) => {
    const [change] = changesBetween(before[path], after[path], { replaces: () => false });
    const kind =
      before[path] === undefined ? "add" : after[path] === undefined ? "delete" : "update";
    return change ? [{ path, kind, replaces: path !== "earlyRenewalHours" } as const] : [];
  });
  const renewal = isReadyForRenewal(state, news)
    ? [{ path: "readyForRenewal", kind: "update", replaces: true } as const]
    : [];
  return { changes: [...changes, ...renewal] };
}

/** Keys are marked even where the program took them from a place that is not. */
function stateOf(resource: Resource, inputs: Properties, outputs: Properties): Properties {
  const state = { ...resource.defaults, ...inputs, ...outputs };
  return Object.fromEntries(
    Object.entries(state).map(([key, value]) => [
      key,
      resource.secrets.includes(key) ? secret(value) : value,
    ]),
  );
}

const provider: ResourceProvider = {
  check,

  diff: ({ type, olds, news, state }) => diff(resourceOf(type), olds, news, state),

  create: async ({ type, inputs, preview }) => {
    const resource = resourceOf(type);
    if (preview) {
      const outputs = Object.fromEntries(resource.computed.map((output) => [output, unknown]));
      return { id: "", state: stateOf(resource, inputs, outputs) };
    }
    const { id, outputs } = await resource.create({ ...resource.defaults, ...inputs });
    return { id, state: stateOf(resource, inputs, outputs) };
  },

  // Keys and certificates are in the state alone, so there is nothing elsewhere to compare with.
  read: async ({ id, state, inputs }) => ({
    id,
    state: isReadyForRenewal(state, state) ? { ...state, readyForRenewal: true } : state,
    inputs,
  }),

  update: async ({ type, state, news }) => {
    const resource = resourceOf(type);
    const outputs = Object.fromEntries(
      [...resource.computed, "readyForRenewal"].map((output) => [output, state[output]]),
    );
    return stateOf(resource, news, outputs);
  },

  delete: async () => undefined,
};
