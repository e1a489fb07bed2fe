import { KubernetesProvider } from "./kubernetes/provider";
import { Resolve } from "./kubernetes/redirect";
import { Served } from "./protocol";
import { type Around, serve } from "./protocol/serve";

const { version } = require("@pulumi/kubernetes/package.json") as { version: string };

export interface KubernetesOptions {
  /** 0 takes any that is free. */
  readonly port: number;
  /**
   * Where connections to a host go instead, for names that do not resolve here. The certificate is
   * still checked against the name.
   */
  readonly resolve?: Resolve;
  readonly around?: Around;
}

/** Plays the `kubernetes` plugin where the official one cannot be installed. */
export const serveKubernetes = ({ port, resolve, around }: KubernetesOptions): Promise<Served> =>
  serve(
    { version, connect: (connection) => new KubernetesProvider(connection, resolve) },
    port,
    around,
  );
