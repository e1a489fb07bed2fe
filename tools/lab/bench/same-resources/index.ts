import { readFileSync } from "node:fs";

import * as pulumi from "@pulumi/pulumi";

interface Registered {
  readonly type: string;
  readonly name: string;
  /** A component has none. */
  readonly inputs?: Record<string, unknown>;
}

type Constructor = new (
  name: string,
  inputs: Record<string, unknown>,
  options: pulumi.CustomResourceOptions,
) => pulumi.CustomResource;

/** The SDK's own class of a type, from the module that a program would import it from. */
function classOf(type: string): Constructor {
  const [packageName, module = "", name = ""] = type.split(":");
  if (packageName === "tls") return from("@pulumi/tls", name);
  if (packageName === "azure-native") return from(`@pulumi/azure-native/${module}`, name);
  const [group = "", version] = module.split("/");
  try {
    return from(`@pulumi/kubernetes/${group.split(".")[0]}/${version}`, name);
  } catch {
    return from("@pulumi/kubernetes/apiextensions", "CustomResource");
  }
}

const from = (path: string, name: string): Constructor =>
  (require(path) as Record<string, Constructor>)[name]!;

const { resources, provider: providerInputs } = JSON.parse(
  readFileSync(new pulumi.Config().require("resources"), "utf8"),
) as { resources: readonly Registered[]; provider: Record<string, unknown> };

const { Provider } =
  require("@pulumi/kubernetes/provider") as typeof import("@pulumi/kubernetes/provider");
const { PrivateKey } = require("@pulumi/tls") as typeof import("@pulumi/tls");

const key = new PrivateKey("unknown", { algorithm: "RSA", rsaBits: 2048 });
// Unknown in a preview, as the real program's is: nothing is asked of a cluster.
const cluster = new Provider("kubernetes", { ...providerInputs, kubeconfig: key.privateKeyPem });
for (const { type, name, inputs } of resources) {
  const options = type.startsWith("kubernetes:") ? { provider: cluster } : {};
  if (inputs) new (classOf(type))(name, inputs, options);
  else new pulumi.ComponentResource(type, name);
}
