import * as pulumi from "@pulumi/pulumi";

// The SDK's types leave it out. Pulumi.yaml's `secret: true` is no help: it would ask every stack
// for an encrypted value.
const { isConfigSecret } = pulumi.runtime as unknown as { isConfigSecret(key: string): boolean };

/** Whether a setting is encrypted in the stack's file; of a map or list, any entry of it. */
export const isEncrypted = (config: pulumi.Config, key: string): boolean =>
  isConfigSecret(`${config.name}:${key}`);
