import { join } from "node:path";

import { authorityIn } from "../../authority";
import { registryDomain } from "../types/containerregistry/registry";
import { blobDomain } from "../types/storage";
import { loginHost } from "../resources/ids";

/** What the REST API identifies itself with over TLS. */
export interface Certificate {
  /** For clients: the authority that they have to trust. */
  readonly authority: string;
  readonly cert: string;
  readonly key: string;
}

const file = "azure-ca.crt";

/** The file that clients are given, as in NODE_EXTRA_CA_CERTS or SSL_CERT_FILE. */
export const authorityFile = (folder: string): string => join(folder, file);

/** A certificate of this start, from the authority in the folder, which clients keep trusting. */
export async function certificateIn(folder: string): Promise<Certificate> {
  const authority = await authorityIn(folder, file, { commonName: "local Azure CA" });
  const names = {
    dnsNames: ["localhost", loginHost, `*.${blobDomain}`, `*.${registryDomain}`],
    ipAddresses: ["127.0.0.1"],
  };
  const issued = await authority.issue({ commonName: "local Azure" }, names);
  return { authority: authority.certificate, ...issued };
}
