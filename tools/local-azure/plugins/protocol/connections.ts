import { createRequire } from "node:module";
import type * as Grpc from "@grpc/grpc-js";
import { EngineClient } from "@pulumi/pulumi/proto/engine_grpc_pb";
import { LogRequest, LogSeverity } from "@pulumi/pulumi/proto/engine_pb";
import type { EngineLog, Plugin, ResourceProvider } from "./protocol";

const ofPulumi = createRequire(require.resolve("@pulumi/pulumi"));
const { credentials } = ofPulumi("@grpc/grpc-js") as typeof Grpc;

/** A program has one provider or a few; more connections than this belong to runs that ended. */
const kept = 64;

/** One provider, and the engine that dialled it. */
export class Connection implements EngineLog {
  readonly provider: ResourceProvider;
  private readonly cancelled = new AbortController();
  private engine?: EngineClient;

  constructor(plugin: Plugin) {
    this.provider = plugin.connect(this);
  }

  /** Aborted when the user interrupts the run. */
  get signal(): AbortSignal {
    return this.cancelled.signal;
  }

  attach(address: string): void {
    this.engine?.close();
    this.engine = new EngineClient(address, credentials.createInsecure());
  }

  progress(urn: string, message: string): void {
    this.log(urn, LogSeverity.INFO, message, true);
  }

  warn(urn: string, message: string): void {
    this.log(urn, LogSeverity.WARNING, message, false);
  }

  cancel(): void {
    this.cancelled.abort(new Error("the run was interrupted"));
  }

  close(): void {
    this.cancel();
    this.engine?.close();
  }

  private log(urn: string, severity: LogSeverity, message: string, ephemeral: boolean): void {
    const request = new LogRequest();
    request.setUrn(urn);
    request.setSeverity(severity);
    request.setMessage(message);
    request.setEphemeral(ephemeral);
    // An engine that is gone needs no message.
    this.engine?.log(request, () => undefined);
  }
}

/**
 * The providers of the programs that run now, by the connection that each was dialled on.
 *
 * With official plugins a process serves one provider. Here one port serves all of them, and no
 * request but the first says which provider it is for.
 */
export class Connections {
  private readonly byPeer = new Map<string, Connection>();
  private latest?: Connection;

  constructor(private readonly plugin: Plugin) {}

  /** A connection that the engine has just made. */
  attached(peer: string): Connection {
    this.byPeer.get(peer)?.close();
    const connection = new Connection(this.plugin);
    this.byPeer.set(peer, connection);
    this.latest = connection;
    const [oldest] = this.byPeer.keys();
    if (this.byPeer.size > kept && oldest !== undefined) {
      this.byPeer.get(oldest)?.close();
      this.byPeer.delete(oldest);
    }
    return connection;
  }

  /** A peer that never attached is an engine that had to dial again during a run. */
  of(peer: string): Connection {
    return this.byPeer.get(peer) ?? this.latest ?? this.attached(peer);
  }

  close(): void {
    for (const connection of this.byPeer.values()) {
      connection.close();
    }
    this.byPeer.clear();
  }
}
