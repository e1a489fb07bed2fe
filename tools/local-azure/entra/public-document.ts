import { jsonRequest } from "../json-request";
import type { ReadDocument } from "./assertion";

/** Reads from the Blob service on this port, as anybody does, by a document's address on Azure. */
export const publicDocuments =
  (blobPort: number, authority: string): ReadDocument =>
  async (url) => {
    const { host, hostname: servername, pathname: path } = new URL(url);
    const { status, body } = await jsonRequest({
      ...{ host: "127.0.0.1", port: blobPort, path, servername, ca: authority },
      headers: { host },
    });
    if (status !== 200) throw new Error(`${url} answers ${status}`);
    return body;
  };
