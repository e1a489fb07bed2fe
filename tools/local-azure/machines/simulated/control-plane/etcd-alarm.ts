import * as fs from "node:fs";
import * as https from "node:https";
import * as path from "node:path";
import { json } from "node:stream/consumers";

interface Alarms {
  readonly alarms?: readonly { readonly memberID: string; readonly alarm: string }[];
}

const noSpace = "NOSPACE";

/**
 * etcd's alarm for want of space, over its HTTP interface: while it is raised, etcd is read but
 * takes no writes.
 */
export class EtcdAlarm {
  /** @param root folder of the machine's files, with etcd's certificates below it */
  constructor(
    private readonly root: string,
    private readonly port: number,
  ) {}

  async raise(isFull: boolean): Promise<void> {
    const { alarms = [] } = await this.ask<Alarms>("/v3/maintenance/alarm", { action: "GET" });
    const raised = alarms.filter(({ alarm }) => alarm === noSpace);
    if (isFull && raised.length === 0) {
      const { header } = await this.ask<{ header: { member_id: string } }>(
        "/v3/maintenance/status",
        {},
      );
      await this.change("ACTIVATE", header.member_id);
    }
    if (!isFull) {
      for (const { memberID } of raised) await this.change("DEACTIVATE", memberID);
    }
  }

  private change(action: string, memberID: string): Promise<unknown> {
    return this.ask("/v3/maintenance/alarm", { action, memberID, alarm: noSpace });
  }

  private ask<T>(at: string, body: object): Promise<T> {
    const file = (name: string): Buffer =>
      fs.readFileSync(path.join(this.root, "etc/kubernetes/pki/etcd", name));
    return new Promise((resolve, reject) => {
      const request = https.request(
        {
          host: "127.0.0.1",
          port: this.port,
          path: at,
          method: "POST",
          ca: file("ca.crt"),
          cert: file("healthcheck-client.crt"),
          key: file("healthcheck-client.key"),
          timeout: 10_000,
        },
        (response) => {
          const answer = json(response) as Promise<T & { message?: string }>;
          answer.then((said) => {
            if (response.statusCode === 200) resolve(said);
            else reject(new Error(`etcd: ${said.message ?? response.statusCode}`));
          }, reject);
        },
      );
      request.on("timeout", () => request.destroy(new Error("etcd did not answer within 10 s")));
      request.on("error", reject);
      request.end(JSON.stringify(body));
    });
  }
}
