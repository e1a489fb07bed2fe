import { get } from "node:https";
import { json } from "node:stream/consumers";

import type { ReadDocument } from "./assertion";

/** Reads from the Blob service on this port, as anybody does, by a document's address on Azure. */
export const publicDocuments =
  (blobPort: number, authority: string): ReadDocument =>
  (url) =>
    new Promise((resolve, reject) => {
      const { host, hostname: servername, pathname: path } = new URL(url);
      get(
        {
          ...{ host: "127.0.0.1", port: blobPort, path, servername, ca: authority },
          headers: { host },
        },
        (response) => {
          const { statusCode = 0 } = response;
          if (statusCode === 200) resolve(json(response));
          else {
            response.resume();
            reject(new Error(`${url} answers ${statusCode}`));
          }
        },
      ).on("error", reject);
    });
