import { createHmac } from "node:crypto";

import { Secret } from "@pulumi/kubernetes/core/v1";
import { ClusterRole, ClusterRoleBinding } from "@pulumi/kubernetes/rbac/v1";
import * as pulumi from "@pulumi/pulumi";

/** Long enough for an update that is fixed by hand, short enough to be worthless next week. */
const lifetimeHours = 24;

export interface JoinTokenArgs {
  /** Name of the machine that may join with it. */
  readonly machine: string;
  /** The run of its bootstrap step; a repeated one, and that of a machine made anew, gets another. */
  readonly run: string;
  readonly joinSecret: pulumi.Output<string>;
}

/**
 * The bootstrap token of one generation of one worker, with the right to remove the Node that its
 * predecessor left, and no other.
 *
 * The cluster deletes an expired token by itself; a `pulumi refresh` after that lists it as gone.
 */
export class JoinToken extends pulumi.ComponentResource {
  /** `<id>.<secret>`, secret. */
  readonly token: pulumi.Output<string>;
  /** What must exist before the machine may join. */
  readonly resources: readonly pulumi.Resource[];

  constructor(args: JoinTokenArgs, opts?: pulumi.ComponentResourceOptions) {
    const { machine, run } = args;
    const name = `${machine}-join`;
    super("zoned:index:JoinToken", name, {}, opts);
    const child = { parent: this };
    const group = `system:bootstrappers:zoned:${machine}`;

    const token = args.joinSecret.apply((key) => deriveToken(key, `${machine}/${run}`));
    this.token = pulumi.secret(token.apply(({ id, secret }) => `${id}.${secret}`));

    const secret = new Secret(
      `${name}-token`,
      {
        metadata: {
          name: pulumi.unsecret(token.apply(({ id }) => `bootstrap-token-${id}`)),
          namespace: "kube-system",
        },
        type: "bootstrap.kubernetes.io/token",
        stringData: {
          description: `lets ${machine} join`,
          "token-id": token.apply(({ id }) => id),
          "token-secret": token.apply((value) => value.secret),
          expiration: expiration(run),
          "usage-bootstrap-authentication": "true",
          "auth-extra-groups": `system:bootstrappers:kubeadm:default-node-token,${group}`,
        },
      },
      // The cluster deletes it when it expires. With its machine it is replaced before the machine
      // is, and then there may be no API that would delete it.
      { ...child, retainOnDelete: true },
    );
    const role = new ClusterRole(
      `${name}-role`,
      {
        metadata: { name: `zoned:${machine}-replaces-itself` },
        rules: [
          {
            apiGroups: [""],
            resources: ["nodes"],
            resourceNames: [machine],
            verbs: ["get", "delete"],
          },
        ],
      },
      child,
    );
    const binding = new ClusterRoleBinding(
      `${name}-binding`,
      {
        metadata: { name: `zoned:${machine}-replaces-itself` },
        roleRef: {
          apiGroup: "rbac.authorization.k8s.io",
          kind: "ClusterRole",
          name: role.metadata.name,
        },
        subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: group }],
      },
      child,
    );
    this.resources = [secret, binding];
    this.registerOutputs();
  }
}

const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";

/**
 * A token in kubeadm's form, always the same for the same purpose, and worth nothing without the
 * key.
 */
export function deriveToken(key: string, purpose: string): { id: string; secret: string } {
  const digest = createHmac("sha256", key).update(`bootstrap-token/${purpose}`).digest();
  const letters = [...digest].map((byte) => alphabet[byte % alphabet.length]).join("");
  return { id: letters.slice(0, 6), secret: letters.slice(6, 22) };
}

/** Counted from the run, so that it is the same in every later update. */
export function expiration(run: string): string {
  const until = Date.parse(run) + lifetimeHours * 3_600_000;
  return new Date(until).toISOString().replace(/\.\d+Z$/, "Z");
}
