import { setTimeout as wait } from "node:timers/promises";

import { type Api, ApiError } from "./api";
import { Cluster } from "./cluster";
import type { Fleet } from "./fleet";
import type { Guest } from "./guest";
import { join, joinAsFounder, type Joining, searchApi } from "./join";
import { Kubeadm } from "./kubeadm";
import { cniAnnotation } from "./kwok";
import type { VirtualMachine } from "./machines";
import { isOf, isReady, readyMessage } from "./node";
import type { Payload } from "../../components/bootstrap";
import { fileOf, initFile, payloadOf } from "./payload";
import type { Steps } from "./steps";

/** How long a script waits, in milliseconds. */
export interface Limits {
  readonly api: number;
  readonly ready: number;
  readonly peers: number;
}

const pollMs = 250;

/** Plays cloud-init/bootstrap.sh: its steps in their order, with what each does, and their names. */
export class ScriptPlayer {
  /** Foundings under way, by the API's name. */
  private readonly founding = new Map<string, Promise<unknown>>();

  constructor(
    private readonly fleet: Fleet,
    private readonly kubeadmBinary: string,
    private readonly limits: Limits,
  ) {}

  /** A founding is not left half-way. */
  async settle(): Promise<void> {
    await Promise.all(this.founding.values());
  }

  async play(guest: Guest, script: string, steps: Steps): Promise<void> {
    const payload = await steps.step("payload", () => payloadOf(script));
    await steps.step("first boot", () => undefined);
    await steps.step("kernel modules", () => undefined);
    let awaitsNode = true;
    if (guest.joined === undefined) {
      awaitsNode = (await this.becomeMember(guest, payload, steps)) === "joined";
    } else if (isFounder(guest.vm, payload)) {
      // Before there is a pod network, the founder cannot be Ready.
      awaitsNode = await this.hasNetwork(guest);
    }
    if (payload.role === "control-plane") {
      await steps.step("control plane", () => this.awaitControlPlane(guest));
    }
    if (awaitsNode) {
      await steps.step("node", () => this.awaitNode(guest, payload.awaitsReady ?? true));
    }
    if (payload.role === "control-plane" && guest.touched) {
      await steps.step("other control planes", () =>
        this.awaitPeers(guest, payload.awaitsReady ?? true),
      );
    }
    await steps.step("secrets", () => {
      guest.touch(false);
      guest.forgetSecrets();
    });
    steps.note(`${guest.vm.name} is a member of the cluster`);
  }

  private async becomeMember(
    guest: Guest,
    payload: Payload,
    steps: Steps,
  ): Promise<"founded" | "joined"> {
    const kubeadm = new Kubeadm(this.kubeadmBinary, guest.root);
    await steps.step("machine", async () => {
      checkPayload(payload, guest.vm);
      for (const file of payload.files) {
        guest.writeFile(file);
      }
      if (payload.role === "control-plane") {
        await kubeadm.validate(fileOf(payload, initFile));
      }
    });
    const joining: Joining = {
      guest,
      payload,
      kubeadm,
      steps,
      clusterOf: (apiName) => this.fleet.clusters.get(apiName),
      limit: this.limits.api,
    };
    const found = await steps.step("search for the API", async () => {
      await this.founding.get(payload.apiName);
      const mayFound = isFounder(guest.vm, payload) && !this.fleet.clusters.has(payload.apiName);
      return mayFound ? undefined : searchApi(joining);
    });
    if (found) {
      await steps.step("kubeadm join", () => join(joining, found));
      return "joined";
    }
    const founded = this.found(guest, payload);
    const settled = founded.catch(() => undefined);
    this.founding.set(payload.apiName, settled);
    void settled.finally(() => this.founding.delete(payload.apiName));
    await steps.step("kubeadm init", () => founded);
    return "founded";
  }

  private async found(guest: Guest, payload: Payload): Promise<void> {
    const { apiName } = payload;
    const cluster = await Cluster.found(
      this.fleet.clusterFolder(apiName),
      {
        apiName,
        vm: guest.vm,
        files: new Map(payload.files.map(({ path, content }) => [path, content])),
        configuration: fileOf(payload, initFile),
      },
      this.fleet.surroundings,
    );
    try {
      await joinAsFounder(guest, payload, cluster);
    } catch (error) {
      await cluster.lose(guest.vm);
      throw error;
    }
    this.fleet.clusters.set(apiName, cluster);
    cluster.play();
  }

  private async hasNetwork(guest: Guest): Promise<boolean> {
    try {
      const node = await this.kubeletOf(guest).get(`/api/v1/nodes/${guest.joined?.node}`);
      return node.metadata.annotations?.[cniAnnotation] !== undefined;
    } catch {
      return false;
    }
  }

  private awaitControlPlane = (guest: Guest): Promise<void> =>
    this.untilWell(guest, this.limits.api, async () =>
      (await this.kubeletOf(guest).isReady())
        ? this.fleet.clusterOf(guest)?.amissAt(guest.vm)
        : "the API does not answer",
    );

  private awaitNode = (guest: Guest, awaitsReady: boolean): Promise<void> =>
    this.untilWell(guest, this.limits.ready, async () => {
      const node = await this.kubeletOf(guest).get(`/api/v1/nodes/${guest.joined?.node}`);
      if (!isOf(node, guest.vm)) {
        return `node ${guest.joined?.node} is another machine's`;
      }
      return isReady(node) || !awaitsReady
        ? undefined
        : `node ${guest.vm.name}: Ready is ${readyMessage(node)}`;
    });

  /** The next machine begins when this one's step ends. */
  private awaitPeers = (guest: Guest, awaitsReady: boolean): Promise<void> =>
    this.untilWell(guest, this.limits.peers, async () => {
      const amiss = (await this.fleet.clusterOf(guest)?.amissElsewhere(guest.vm, awaitsReady)) ?? [];
      return amiss.length === 0
        ? undefined
        : "another control plane is not well, so no other machine was touched; make it well and run " +
            `\`pulumi up\` again, which goes on from here: ${amiss.join("; ")}`;
    });

  private kubeletOf(guest: Guest): Api {
    const kubelet = this.fleet.kubeletOf(guest);
    if (kubelet === undefined) {
      throw new Error(`there is no cluster ${guest.joined?.apiName} any more`);
    }
    return kubelet;
  }

  /** Waits until nothing is amiss, and otherwise tells what was the last time it looked. */
  private async untilWell(
    guest: Guest,
    limit: number,
    amiss: () => Promise<string | undefined>,
  ): Promise<void> {
    let last: string | undefined;
    for (const until = Date.now() + limit; Date.now() < until; await wait(pollMs)) {
      guest.failIfEnded();
      try {
        last = await amiss();
      } catch (error) {
        last = (error as Error).message;
        if (error instanceof ApiError && error.status === 403) {
          throw error;
        }
      }
      if (last === undefined) {
        return;
      }
    }
    throw new Error(`stopped, ${limit / 1000} s were not enough: ${last}`);
  }
}

const isFounder = ({ vmId }: VirtualMachine, { role, founder }: Payload): boolean =>
  role === "control-plane" && founder?.toLowerCase() === vmId.toLowerCase();

function checkPayload({ machine, nodeAddress }: Payload, vm: VirtualMachine): void {
  if (machine !== vm.name) {
    throw new Error(`the payload is for ${machine}, and this machine's host name is ${vm.name}`);
  }
  if (nodeAddress !== vm.privateAddress) {
    throw new Error(
      `the payload gives ${machine} the address ${nodeAddress}, and its interface has ${vm.privateAddress}`,
    );
  }
}
