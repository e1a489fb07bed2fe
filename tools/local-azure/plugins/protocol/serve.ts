import { createRequire } from "node:module";
import type * as Grpc from "@grpc/grpc-js";
import { EngineClient } from "@pulumi/pulumi/proto/engine_grpc_pb";
import { LogRequest, LogSeverity } from "@pulumi/pulumi/proto/engine_pb";
import { PluginAttach, PluginInfo } from "@pulumi/pulumi/proto/plugin_pb";
import { ResourceProviderService } from "@pulumi/pulumi/proto/provider_grpc_pb";
import * as wire from "@pulumi/pulumi/proto/provider_pb";
import {
  Change,
  CheckRequest,
  CheckResult,
  DiffRequest,
  DiffResult,
  EngineLog,
  Plugin,
  ResourceProvider,
  Served,
} from "./protocol";
import { decoded, encoded, statusOf } from "./values";

// npm may nest the copies that the SDK uses, and messages of one copy cannot hold those of another.
const ofPulumi = createRequire(require.resolve("@pulumi/pulumi"));
const { credentials, Server, ServerCredentials } = ofPulumi("@grpc/grpc-js") as typeof Grpc;
const { Empty } = ofPulumi(
  "google-protobuf/google/protobuf/empty_pb.js",
) as typeof import("google-protobuf/google/protobuf/empty_pb");

/** A program has one provider or a few; more connections than this belong to runs that ended. */
const kept = 64;

/** One provider, and the engine that dialled it. */
class Connection implements EngineLog {
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

/** Comes between a request that changes something and what does it. */
export type Around = <T>(method: string, urn: string, act: () => Promise<T>) => Promise<T>;

/** Serves a plugin on loopback, for `PULUMI_DEBUG_PROVIDERS`. Port 0 takes any that is free. */
export async function serve(
  plugin: Plugin,
  port: number,
  around: Around = (_method, _urn, act) => act(),
): Promise<Served> {
  // A manifest can be larger than the four megabytes that gRPC takes by default.
  const server = new Server({
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
  });
  const connections = new Connections(plugin);
  server.addService(ResourceProviderService, methods(plugin, connections, around));
  const bound = await new Promise<number>((resolve, reject) =>
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, taken) =>
      error ? reject(error) : resolve(taken),
    ),
  );
  return {
    port: bound,
    close: async () => {
      connections.close();
      server.forceShutdown();
    },
  };
}

type Answer<Request, Response> = (
  connection: Connection,
  request: Request,
  signal: AbortSignal,
) => Response | Promise<Response>;

function methods(
  plugin: Plugin,
  connections: Connections,
  around: Around,
): Grpc.UntypedServiceImplementation {
  const unary =
    <Request, Response>(
      answer: Answer<Request, Response>,
    ): Grpc.handleUnaryCall<Request, Response> =>
    (call, callback) => {
      const connection = connections.of(call.getPeer());
      const gone = new AbortController();
      call.on("cancelled", () => gone.abort(new Error("the engine went away")));
      const signal = AbortSignal.any([connection.signal, gone.signal]);
      Promise.resolve()
        .then(() => answer(connection, call.request, signal))
        .then(
          (response) => callback(null, response),
          (error: unknown) => callback(statusOf(error)),
        );
    };

  const changing = <T>(
    method: string,
    request: { getUrn(): string; getPreview?(): boolean },
    act: () => Promise<T>,
  ): Promise<T> => (request.getPreview?.() ? act() : around(method, request.getUrn(), act));

  return {
    attach: ((call, callback) => {
      connections.attached(call.getPeer()).attach(call.request.getAddress());
      callback(null, new Empty());
    }) satisfies Grpc.handleUnaryCall<PluginAttach, InstanceType<typeof Empty>>,

    getPluginInfo: unary(() => {
      const info = new PluginInfo();
      info.setVersion(plugin.version);
      return info;
    }),

    getSchema: unary(() => {
      const response = new wire.GetSchemaResponse();
      response.setSchema("{}");
      return response;
    }),

    checkConfig: unary(({ provider }, request: wire.CheckRequest, signal) => {
      const asked = check(request, signal);
      return checked(provider.checkConfig?.(asked) ?? { inputs: asked.news });
    }),

    diffConfig: unary(({ provider }, request: wire.DiffRequest, signal) =>
      differing(provider.diffConfig?.(diff(request, signal)) ?? { changes: [] }),
    ),

    configure: unary(async ({ provider }, request: wire.ConfigureRequest) => {
      await provider.configure?.(decoded(request.getArgs()));
      const response = new wire.ConfigureResponse();
      // Secrets come without their marks, and the engine puts them back where it knows them.
      response.setAcceptsecrets(false);
      response.setSupportspreview(true);
      return response;
    }),

    check: unary(async ({ provider }, request: wire.CheckRequest, signal) =>
      checked(await provider.check(check(request, signal))),
    ),

    diff: unary(async ({ provider }, request: wire.DiffRequest, signal) =>
      differing(await provider.diff(diff(request, signal))),
    ),

    create: unary(async ({ provider }, request: wire.CreateRequest, signal) => {
      const { id, state } = await changing("create", request, () =>
        provider.create({
          ...subject(request, signal),
          inputs: decoded(request.getProperties()),
          preview: request.getPreview(),
          timeoutSeconds: request.getTimeout(),
        }),
      );
      const response = new wire.CreateResponse();
      response.setId(id);
      response.setProperties(encoded(state));
      return response;
    }),

    read: unary(async ({ provider }, request: wire.ReadRequest, signal) => {
      const found = await provider.read({
        ...subject(request, signal),
        id: request.getId(),
        state: decoded(request.getProperties()),
        inputs: decoded(request.getInputs()),
      });
      const response = new wire.ReadResponse();
      // An empty id means to the engine that the resource is gone.
      response.setId(found?.id ?? "");
      response.setProperties(encoded(found?.state ?? {}));
      response.setInputs(encoded(found?.inputs ?? {}));
      return response;
    }),

    update: unary(async ({ provider }, request: wire.UpdateRequest, signal) => {
      const state = await changing("update", request, () =>
        provider.update({
          ...diff(request, signal),
          preview: request.getPreview(),
          timeoutSeconds: request.getTimeout(),
        }),
      );
      const response = new wire.UpdateResponse();
      response.setProperties(encoded(state));
      return response;
    }),

    delete: unary(async ({ provider }, request: wire.DeleteRequest, signal) => {
      await changing("delete", request, () =>
        provider.delete({
          ...subject(request, signal),
          id: request.getId(),
          state: decoded(request.getProperties()),
          inputs: decoded(request.getOldInputs()),
          timeoutSeconds: request.getTimeout(),
        }),
      );
      return new Empty();
    }),

    invoke: unary(async ({ provider }, request: wire.InvokeRequest) => {
      if (!provider.invoke) {
        throw new Error(`${request.getTok()} is a function this provider does not have`);
      }
      const response = new wire.InvokeResponse();
      response.setReturn(
        encoded(await provider.invoke(request.getTok(), decoded(request.getArgs()))),
      );
      return response;
    }),

    cancel: ((call, callback) => {
      connections.of(call.getPeer()).cancel();
      callback(null, new Empty());
    }) satisfies Grpc.handleUnaryCall<InstanceType<typeof Empty>, InstanceType<typeof Empty>>,
  };
}

interface Typed {
  getUrn(): string;
  getType(): string;
}

const subject = (request: Typed, signal: AbortSignal) => ({
  urn: request.getUrn(),
  type: request.getType(),
  signal,
});

const check = (request: wire.CheckRequest, signal: AbortSignal): CheckRequest => ({
  ...subject(request, signal),
  olds: decoded(request.getOlds()),
  news: decoded(request.getNews()),
});

const diff = (
  request: wire.DiffRequest | wire.UpdateRequest,
  signal: AbortSignal,
): DiffRequest => ({
  ...subject(request, signal),
  id: request.getId(),
  state: decoded(request.getOlds()),
  olds: decoded(request.getOldInputs()),
  news: decoded(request.getNews()),
});

function checked({ inputs, failures = [] }: CheckResult): wire.CheckResponse {
  const response = new wire.CheckResponse();
  response.setInputs(encoded(inputs));
  for (const { property, reason } of failures) {
    const failure = new wire.CheckFailure();
    failure.setProperty(property);
    failure.setReason(reason);
    response.addFailures(failure);
  }
  return response;
}

const { Kind } = wire.PropertyDiff;
const kinds: Record<Change["kind"], readonly [wire.PropertyDiff.Kind, wire.PropertyDiff.Kind]> = {
  add: [Kind.ADD, Kind.ADD_REPLACE],
  delete: [Kind.DELETE, Kind.DELETE_REPLACE],
  update: [Kind.UPDATE, Kind.UPDATE_REPLACE],
};

function differing({ changes, deleteBeforeReplace = false }: DiffResult): wire.DiffResponse {
  const { DIFF_SOME, DIFF_NONE } = wire.DiffResponse.DiffChanges;
  const response = new wire.DiffResponse();
  response.setChanges(changes.length > 0 ? DIFF_SOME : DIFF_NONE);
  response.setDiffsList([...new Set(changes.map(({ path }) => path.split(/[.[]/)[0] ?? path))]);
  response.setReplacesList(changes.filter(({ replaces }) => replaces).map(({ path }) => path));
  response.setDeletebeforereplace(deleteBeforeReplace);
  response.setHasdetaileddiff(changes.length > 0);
  for (const { path, kind, replaces } of changes) {
    const detail = new wire.PropertyDiff();
    detail.setKind(kinds[kind][replaces ? 1 : 0]);
    detail.setInputdiff(true);
    response.getDetaileddiffMap().set(path, detail);
  }
  return response;
}
