import * as https from "node:https";
import type { Duplex } from "node:stream";
import { checkServerIdentity } from "node:tls";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Where connections to a host go instead, for a name that does not resolve here. */
export type Resolve = (host: string, port: number) => Endpoint | undefined;

/** The name in the certificate stays the one that was asked for, wherever the connection leads. */
export class RedirectingAgent extends https.Agent {
  constructor(
    private readonly resolve: Resolve,
    options: https.AgentOptions,
  ) {
    super(options);
  }

  override createConnection(
    options: https.RequestOptions,
    callback?: (error: Error | null, stream: Duplex) => void,
  ) {
    const host = options.host ?? "";
    const expected = options.servername || host;
    const target = this.resolve(host, Number(options.port));
    return super.createConnection(
      {
        ...options,
        ...target,
        checkServerIdentity: (_host, certificate) => checkServerIdentity(expected, certificate),
      },
      callback,
    );
  }
}
