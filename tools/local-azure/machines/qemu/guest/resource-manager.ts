import { readFileSync } from "node:fs";

import { azureServices } from "../network/azure-services";
import type { Agent } from "./agent";

const units = "/etc/systemd/system";
const name = "local-azure";

/**
 * Leads a machine's loopback to the local Azure's Resource Manager, on the port that it has on the
 * host: one address is right for the program, which runs on the host, and in azure.json. Pods get
 * the machine's authorities, and so this one, as on Azure.
 */
export async function leadToResourceManager(
  agent: Pick<Agent, "write" | "run">,
  port: number,
  authority: string,
): Promise<void> {
  await agent.write(`/etc/ssl/certs/${name}.pem`, readFileSync(authority, "utf8"));
  await agent.write(
    `${units}/${name}.socket`,
    `[Socket]\nListenStream=127.0.0.1:${port}\n[Install]\nWantedBy=sockets.target\n`,
  );
  await agent.write(
    `${units}/${name}.service`,
    `[Service]\nExecStart=/usr/lib/systemd/systemd-socket-proxyd ${azureServices.resourceManager.address}:443\n`,
  );
  await agent.run("/usr/bin/systemctl", "enable", "--now", `${name}.socket`);
}
