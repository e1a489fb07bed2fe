import { idIn } from "../sample";
import type { Cases } from "./case";

const registry = idIn("images", "Microsoft.ContainerRegistry/registries/OurImages");

const to = (host: string, change: object = {}) => ({
  registryCredentials: { [host]: { username: "robot", password: "hush", ...change } },
});

/** All of them encrypted. */
export const registryCredentialCases: Cases = {
  refused: [
    [
      "a registry with its scheme",
      to("https://ghcr.io"),
      'registryCredentials["https://ghcr.io"] is no registry\'s name, expected a host',
    ],
    ["a registry that no image can begin with", to("GHCR.io"), "a host in lower case"],
    [
      "a registry that kubelets log in to by their identity",
      { registries: [registry], ...to("ourimages-x7f2.azurecr.io") },
      "since kubelets log in to those by their identity",
    ],
    ["nobody", to("ghcr.io", { username: "" }), 'registryCredentials["ghcr.io"].username is empty'],
    ["no password", to("ghcr.io", { password: "" }), "a user and a password or token"],
    [
      "what it would not use",
      to("ghcr.io", { email: "me@example.com" }),
      "has something else than username and password",
    ],
    [
      "a password alone",
      { registryCredentials: { "ghcr.io": "hush" } },
      "expected username and password by registry",
    ],
    ["a text", { registryCredentials: "hush" }, "registryCredentials is no map"],
  ],
  accepted: [
    ["another registry", to("ghcr.io")],
    ["a part of one at a port", to("registry.example:5000/team")],
    ["another of Azure's", { registries: [registry], ...to("theirs.azurecr.io") }],
  ],
};
