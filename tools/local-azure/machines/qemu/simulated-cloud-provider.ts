import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "../../../shared/files";
import type { Address } from "../../daemon/attachment";
import type { VirtualMachine } from "../machines";
import { Api, ApiError, type Body } from "../simulated/api";
import { initialized } from "../simulated/nodes/cloud-provider";
import { isReady, uninitialized } from "../simulated/nodes/node";
import type { Administrator } from "./administrator";

const pollMs = 3_000;
const managers = "/apis/apps/v1/namespaces/kube-system/daemonsets/cloud-node-manager";

interface SimulatedCloudProviderOptions {
  readonly folder: string;
  readonly addressOf: (apiName: string) => Address | undefined;
  /** The machine of this name, if there is one. */
  readonly vmOf: (name: string) => VirtualMachine | undefined;
  readonly log: (message: string) => void;
}

/**
 * Azure's cloud provider, simulated by the local Azure for clusters that leave it out: provider id,
 * zone labels, the taint taken off, and the Node of a machine that is gone deleted. Its image
 * cannot be had where there is nothing but package registries.
 */
export class SimulatedCloudProvider {
  private timer: NodeJS.Timeout | undefined;
  private readonly administrators = new Map<string, Administrator>();
  private readonly announced = new Set<string>();

  constructor(private readonly options: SimulatedCloudProviderOptions) {
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
    if (this.administrators.size === 0) return;
    this.timer ??= setInterval(() => void this.poll(), pollMs).unref();
  }

  end(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private isPolling = false;

  private async poll(): Promise<void> {
    if (this.isPolling) return;
    this.isPolling = true;
    try {
      for (const one of this.administrators.values()) {
        // A cluster that is not there yet, or has no time to answer, is looked at again.
        await this.reconcile(one).catch((error: Error) => {
          if (error instanceof ApiError) this.options.log(`cloud provider: ${error.message}`);
        });
      }
    } finally {
      this.isPolling = false;
    }
  }

  private async reconcile({ apiName, ca, user }: Administrator): Promise<void> {
    const { addressOf, vmOf, log } = this.options;
    const address = addressOf(apiName);
    if (address === undefined) return;
    const api = new Api({ ...address, serverName: apiName, ca }, user);
    await reconcileNodes({ api, vmOf, log, begins: () => this.announceOnce(apiName) });
  }

  private announceOnce(apiName: string): void {
    if (this.announced.has(apiName)) return;
    this.announced.add(apiName);
    this.options.log(
      `${apiName}: this cluster runs no cloud provider, so the local Azure does its work`,
    );
  }
}

interface Part extends Pick<SimulatedCloudProviderOptions, "vmOf" | "log"> {
  readonly api: Pick<Api, "get" | "find" | "put" | "delete">;
  /** Called before anything is done. */
  readonly begins: () => void;
}

/** Does what a cloud provider has to do now, unless the cluster runs one. */
export async function reconcileNodes({ api, vmOf, log, begins }: Part): Promise<void> {
  const nodes = (await api.get("/api/v1/nodes"))["items"] as Body[];
  const due = nodes.filter((node) => {
    const isNew = node.spec.taints?.some(({ key }: Body) => key === uninitialized.key);
    const isGone = vmOf(node.metadata.name) === undefined && !isReady(node);
    return isNew || isGone;
  });
  if (due.length === 0 || (await api.find(managers)) !== undefined) return;
  begins();
  for (const node of due) {
    const vm = vmOf(node.metadata.name);
    const path = `/api/v1/nodes/${node.metadata.name}`;
    if (vm === undefined) await api.delete(path);
    else await api.put(path, initialized(node, vm));
    log(
      `node ${node.metadata.name}: ${vm === undefined ? "deleted, as its machine is" : "initialized"}`,
    );
  }
}
