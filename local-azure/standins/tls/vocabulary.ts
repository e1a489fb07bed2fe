// @peculiar/x509 wants it loaded before itself.
import "reflect-metadata";
import * as x509 from "@peculiar/x509";

const { KeyUsageFlags } = x509;

export const keyUsages: Readonly<Record<string, x509.KeyUsageFlags>> = {
  digital_signature: KeyUsageFlags.digitalSignature,
  content_commitment: KeyUsageFlags.nonRepudiation,
  key_encipherment: KeyUsageFlags.keyEncipherment,
  data_encipherment: KeyUsageFlags.dataEncipherment,
  key_agreement: KeyUsageFlags.keyAgreement,
  cert_signing: KeyUsageFlags.keyCertSign,
  crl_signing: KeyUsageFlags.cRLSign,
  encipher_only: KeyUsageFlags.encipherOnly,
  decipher_only: KeyUsageFlags.decipherOnly,
};

export const extendedUsages: Readonly<Record<string, string>> = {
  any_extended: "2.5.29.37.0",
  server_auth: "1.3.6.1.5.5.7.3.1",
  client_auth: "1.3.6.1.5.5.7.3.2",
  code_signing: "1.3.6.1.5.5.7.3.3",
  email_protection: "1.3.6.1.5.5.7.3.4",
  ipsec_end_system: "1.3.6.1.5.5.7.3.5",
  ipsec_tunnel: "1.3.6.1.5.5.7.3.6",
  ipsec_user: "1.3.6.1.5.5.7.3.7",
  timestamping: "1.3.6.1.5.5.7.3.8",
  ocsp_signing: "1.3.6.1.5.5.7.3.9",
  microsoft_server_gated_crypto: "1.3.6.1.4.1.311.10.3.3",
  netscape_server_gated_crypto: "2.16.840.1.113730.4.1",
  microsoft_commercial_code_signing: "1.3.6.1.4.1.311.2.1.22",
  microsoft_kernel_code_signing: "1.3.6.1.4.1.311.61.1.1",
};

/** What `allowedUses` may name. */
export const knownUses: readonly string[] = [
  ...Object.keys(keyUsages),
  ...Object.keys(extendedUsages),
];

export interface Subject {
  readonly country?: string;
  readonly organization?: string;
  readonly organizationalUnit?: string;
  readonly locality?: string;
  readonly province?: string;
  readonly streetAddresses?: readonly string[];
  readonly postalCode?: string;
  readonly commonName?: string;
  readonly serialNumber?: string;
}

/** In the order in which Go writes the parts of a name. */
const attributes: readonly (readonly [keyof Subject, string])[] = [
  ["country", "2.5.4.6"],
  ["organization", "2.5.4.10"],
  ["organizationalUnit", "2.5.4.11"],
  ["locality", "2.5.4.7"],
  ["province", "2.5.4.8"],
  ["streetAddresses", "2.5.4.9"],
  ["postalCode", "2.5.4.17"],
  ["commonName", "2.5.4.3"],
  ["serialNumber", "2.5.4.5"],
];

/**
 * Given as a bare string, the library would take quotes and the like in it for the syntax of a
 * name.
 */
const nameString = (value: string): x509.JsonAttributeObject =>
  /^[A-Za-z0-9 '()+,\-./:=?]*$/.test(value) ? { printableString: value } : { utf8String: value };

export const nameOf = (subject: Subject): x509.Name =>
  new x509.Name(
    attributes.flatMap(([part, id]) => {
      const values = [subject[part] ?? []].flat().filter((value) => value !== "");
      return values.length > 0 ? [{ [id]: values.map(nameString) }] : [];
    }),
  );

export interface Names {
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  readonly uris?: readonly string[];
}

export function alternativeNames({
  dnsNames = [],
  ipAddresses = [],
  uris = [],
}: Names): x509.Extension[] {
  const names: x509.JsonGeneralNames = [
    ...dnsNames.map((value) => ({ type: "dns" as const, value })),
    ...ipAddresses.map((value) => ({ type: "ip" as const, value })),
    ...uris.map((value) => ({ type: "url" as const, value })),
  ];
  return names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : [];
}
