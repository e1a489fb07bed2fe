"use strict";

const { readFileSync } = require("node:fs");

const pulumi = require("@pulumi/pulumi");
const { Provider } = require("@pulumi/kubernetes/provider");
const { PrivateKey } = require("@pulumi/tls");

/** The SDK's own class of a type, from the module that a program would import it from. */
function classOf(type) {
  const [packageName, module = "", name = ""] = type.split(":");
  if (packageName === "tls") return require("@pulumi/tls")[name];
  if (packageName === "azure-native") return require(`@pulumi/azure-native/${module}`)[name];
  const [group, version] = module.split("/");
  try {
    return require(`@pulumi/kubernetes/${group.split(".")[0]}/${version}`)[name];
  } catch {
    return require("@pulumi/kubernetes/apiextensions").CustomResource;
  }
}

const file = new pulumi.Config().require("resources");
const { resources, provider } = JSON.parse(readFileSync(file, "utf8"));

const key = new PrivateKey("unknown", { algorithm: "RSA", rsaBits: 2048 });
// Unknown in a preview, as the real program's is: nothing is asked of a cluster.
const cluster = new Provider("kubernetes", { ...provider, kubeconfig: key.privateKeyPem });
for (const { type, name, inputs } of resources) {
  const options = type.startsWith("kubernetes:") ? { provider: cluster } : {};
  // A component has no inputs.
  if (inputs) new (classOf(type))(name, inputs, options);
  else new pulumi.ComponentResource(type, name);
}
