import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import {
  describe as metadata,
  type MachineMetadata,
} from "../../tools/local-azure/machines/qemu/network/metadata";
import { credentialProvider } from "../../tools/programs/controllers";
import { placesOf } from "../../tools/programs/installs";
import { serveProxyTo } from "./listen";
import { testFolder } from "./test-folder";

/** Of what a kubelet and its plugin tell each other. */
export const pluginApi = "credentialprovider.kubelet.k8s.io/v1";

interface Asking {
  readonly image: string;
  /** What is in the file that names its identity. */
  readonly login: string;
  readonly machine: MachineMetadata;
  /** Where all registries listen, and the authority that they are believed by. */
  readonly port: number;
  readonly ca: string;
}

/** Asks upstream's program as a kubelet does; returns how it ended, and whom it has asked. */
export async function askCredentialProvider({ image, login, machine, port, ca }: Asking) {
  const folder = testFolder();
  const { address, asked } = await serveProxyTo(port, (request, response) => {
    const { status, body } = metadata(new URL(request.url!), request.headers, machine);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  const [file, authority] = [join(folder, "registries.json"), join(folder, "ca.pem")];
  writeFileSync(file, login);
  writeFileSync(authority, ca);
  // The metadata service, too, is behind it here: its address is no other machine's.
  const env = { HTTP_PROXY: address, HTTPS_PROXY: address, SSL_CERT_FILE: authority };
  const program = placesOf(credentialProvider)["acr-credential-provider"]!;
  const child = spawn(program, [file], { env });
  const kind = "CredentialProviderRequest";
  child.stdin.end(JSON.stringify({ apiVersion: pluginApi, kind, image }));
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise((resolve, reject) => child.on("error", reject).on("close", resolve)),
  ]);
  return { stdout, stderr, code, asked };
}
