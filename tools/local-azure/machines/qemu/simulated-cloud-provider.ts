import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { writeWhole } from "../../../shared/files";
import type { Address } from "../../daemon/attachment";
import type { VirtualMachine } from "../machines";
import { Api, ApiError, type ApiUser, type Body } from "../simulated/api";
import { Poller, reconcileNode } from "../simulated/nodes/cloud-provider";
import type { Payload } from "../../../../components/machine/payload";
import { certificateRequest, newPrivateKey, signed, signingKey } from "../../x509";

const yearHours = 365 * 24;

/** What the local Azure needs to simulate the cloud provider in a cluster. */
interface Administrator {
  readonly apiName: string;
  readonly ca: string;
  readonly user: ApiUser;
}

const contentOf = ({ files }: Payload, path: string): string | undefined =>
  files.find((file) => file.path === path)?.content;

/**
 * A certificate of the cloud provider's part, signed by the CA that a control plane is handed.
 * Undefined for a worker, which has none.
 */
export async function administratorOf(payload: Payload): Promise<Administrator | undefined> {
  const ca = contentOf(payload, "/etc/kubernetes/pki/ca.crt");
  const caKey = contentOf(payload, "/etc/kubernetes/pki/ca.key");
  if (ca === undefined || caKey === undefined) return undefined;
  const { privateKeyPem: key } = await newPrivateKey();
  const subject = { organization: "system:masters", commonName: "local-azure:cloud-provider" };
  const request = await certificateRequest(await signingKey(key, "its key"), subject);
  const { certPem: cert } = await signed(await signingKey(caKey, "ca.key"), ca, request, {
    allowedUses: ["digital_signature", "client_auth"],
    validityPeriodHours: yearHours,
    isCaCertificate: false,
    setSubjectKeyId: false,
  });
  return { apiName: payload.apiName, ca, user: { cert, key } };
}

const pollMs = 3_000;
const managers = "/apis/apps/v1/namespaces/kube-system/daemonsets/cloud-node-manager";

interface SimulatedCloudProviderOptions {
  readonly folder: string;
  readonly addressOf: (apiName: string) => Address | undefined;
  /** The machine of this name, if there is one. */
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  readonly log: (message: string) => void;
}

/** Azure's cloud provider, simulated for clusters on real machines that leave it out. */
export class SimulatedCloudProvider {
  private readonly administrators = new Map<string, Administrator>();
  private readonly poller: Poller;

  constructor(private readonly options: SimulatedCloudProviderOptions) {
    this.poller = new Poller((log) => this.poll(log), options.log);
    const { folder } = options;
    for (const name of existsSync(folder) ? readdirSync(folder) : []) {
      if (!name.endsWith(".json")) continue;
      const one = JSON.parse(readFileSync(join(folder, name), "utf8")) as Administrator;
      this.administrators.set(one.apiName, one);
    }
  }

  /** A cluster came to life, or this is another of its control planes. */
  serve(administrator: Administrator): void {
    const { apiName } = administrator;
    const file = join(this.options.folder, `administrator-${apiName}.json`);
    writeWhole(file, JSON.stringify(administrator));
    this.administrators.set(apiName, administrator);
    this.begin();
  }

  begin(): void {
    if (this.administrators.size > 0) this.poller.wake();
  }

  end(): void {
    this.poller.stop();
  }

  private async poll(log: (message: string) => void): Promise<boolean> {
    await wait(pollMs);
    for (const { apiName, ca, user } of this.administrators.values()) {
      const address = this.options.addressOf(apiName);
      if (address === undefined) continue;
      const api = new Api({ ...address, serverName: apiName, ca }, user);
      // A cluster that is not there yet, or has no time to answer, is asked again.
      const isMissing = await reconcileNodes(api, this.options.vmOf).catch((error: Error) => {
        if (error instanceof ApiError) log(`cloud provider: ${error.message}`);
        return false;
      });
      if (isMissing) {
        log(`${apiName}: this cluster runs no cloud provider, so the local Azure does its work`);
      }
    }
    return true;
  }
}

/**
 * Does what Azure's cloud provider has to do now, unless the cluster runs one; returns whether it
 * runs none.
 */
export async function reconcileNodes(
  api: Pick<Api, "get" | "find" | "put" | "patch" | "delete">,
  vmOf: SimulatedCloudProviderOptions["vmOf"],
): Promise<boolean> {
  if ((await api.find(managers)) !== undefined) return false;
  const provider = {
    nodeManager: () => api,
    controllerManager: { api, graceMs: async () => 0 },
  };
  for (const node of (await api.get("/api/v1/nodes"))["items"] as Body[]) {
    await reconcileNode(node, vmOf(node.metadata.name), provider);
  }
  return true;
}
