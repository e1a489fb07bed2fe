import { appendFileSync } from "node:fs";
import { join } from "node:path";

import { authorityIn } from "../../../authority";
import { firewallProxy } from "./firewall-proxy";
import { mirrorAddress } from "./namespaces";
import { firewall } from "./ruleset";

/** Who the proxy lets out. All that has a meaning in addresses, shells and units is in the password. */
export const firewallLogin = { user: "cluster", password: "p@ss/w:rd $1%" };

const authority = "firewall-ca.crt";

/** The certificate by which the firewall answers in others' names, where networks are kept. */
export const firewallAuthority = (folder: string): string => join(folder, authority);

/** What the firewall's proxy was asked, a line of JSON each. */
export const firewallLog = (folder: string): string => join(folder, "firewall-requests.jsonl");

async function serve(folder: string): Promise<void> {
  firewallProxy({
    login: firewallLogin,
    authority: await authorityIn(folder, authority, { commonName: "company CA" }),
    mirror: { host: mirrorAddress, port: 80 },
    passed: (passage) => appendFileSync(firewallLog(folder), `${JSON.stringify(passage)}\n`),
  }).listen(firewall.proxyPort, firewall.address);
}

if (require.main === module) {
  serve(process.argv[2] ?? "").catch((error: Error) => {
    console.error(error.message);
    process.exit(1);
  });
}
