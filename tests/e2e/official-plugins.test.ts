import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { account } from "../../tools/local-azure/arm/resources/resource";
import { endDaemon, ensureDaemon } from "../../tools/local-azure/daemon/daemon-client";
import { choosePlugins } from "../../tools/local-azure/rehearsal/choose-plugins";
import { Rehearsal } from "../../tools/local-azure/rehearsal/rehearsal";
import { takeFolder } from "../../tools/local-azure/rehearsal/state-folder";
import { pluginTools } from "../../tools/programs/tools";
import { checkout, loadTypeScript } from "../../tools/shared/checkout";
import { Progress } from "../../tools/shared/progress";
import { succeeded } from "../../tools/lab/local-cloud";
import { testFolder } from "../support/test-folder";

let state: string;
let folder: string;
beforeEach(() => {
  state = takeFolder(testFolder());
  folder = testFolder();
});
afterEach(() => endDaemon(state));

/** The plugin as it would be after its download. */
function azureNative(cache: string) {
  const [tool] = pluginTools.filter(({ name }) => name === "pulumi-resource-azure-native");
  const { name, version } = tool!;
  const plugin = [
    ...loadTypeScript,
    join(checkout, "tools/local-azure/tests/support/plugins/azure-native.ts"),
  ];
  mkdirSync(join(cache, `${name}-${version}`), { recursive: true });
  const script = `#!/bin/sh\nexec node ${plugin.map((word) => `'${word}'`).join(" ")}\n`;
  writeFileSync(join(cache, `${name}-${version}`, name), script, { mode: 0o755 });
  return { ...tool!, downloads: [] };
}

/** A program that asks the plugin who it is logged in as. */
function program(): string {
  const files = {
    "Pulumi.yaml": "name: asks\nruntime: nodejs\n",
    "package.json": JSON.stringify({ main: "index.js" }),
    "index.js":
      'exports.found = require("@pulumi/azure-native/authorization").getClientConfig();\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  symlinkSync(join(checkout, "node_modules"), join(folder, "node_modules"));
  return folder;
}

it("runs Pulumi's own plugin for Azure where it is there, which finds the local Azure and its login", async () => {
  const cache = join(folder, "cache");
  const { signal } = new AbortController();
  const progress = new Progress({ write: () => true });
  await choosePlugins(state, {
    ...{ cache, progress, signal },
    ...{ asked: "official", tools: [azureNative(cache)] },
  });
  const binaries = process.env["ZONED_BINARIES"]!;
  const azure = await ensureDaemon({ state, binaries }, progress, signal);
  const stack = await Rehearsal.open({
    ...{ state, binaries, azure },
    ...{ stack: "asks", program: program() },
  });

  succeeded(await stack.up("--skip-preview"));

  const { subscriptionId, tenantId } = account;
  expect(await stack.outputs()).toEqual({
    found: {
      ...{ subscriptionId, tenantId, clientId: "of the plugin" },
      objectId: `https://127.0.0.1:${azure.ports.resourceManager}/`,
    },
  });
});
