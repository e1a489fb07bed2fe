import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { stringify } from "yaml";

import { kubeProxyConfiguration } from "../../../../components/kubeadm/kube-proxy";
import { kubeProxyProblems } from "../../../../components/settings/rules/kube-proxy";
import type { Settings } from "../../../../components/settings/settings";
import { validSettings } from "../../../support/sample";
import { endings, startings } from "../../../support/settings-cases/kube-proxy";
import type { Values } from "../../../support/stack";
import { testFolder } from "../../../support/test-folder";
import { built, run } from "../../../support/tools";

const folder = testFolder();

/** Where it ends once it has taken its configuration: a file cannot have files in it. */
const nowhere = "/dev/null/nowhere";

const settingsOf = (proxyMode: string, kubeProxy: Values): Settings => ({
  ...validSettings,
  proxyMode: proxyMode as Settings["proxyMode"],
  kubeProxy,
});

async function takes(settings: Settings): Promise<boolean> {
  const path = join(folder, "config.conf");
  const configuration = kubeProxyConfiguration(settings);
  writeFileSync(path, stringify({ ...configuration, clientConnection: { kubeconfig: nowhere } }));
  const { code, stderr } = await run(built("kube-proxy"), ["--config", path]);
  expect(code).not.toBe(0);
  return stderr.includes(nowhere);
}

it("takes what the real kube-proxy takes, and refuses what it ends at", async () => {
  const found: object[] = [];
  for (const [mode, value] of [...startings, ...endings]) {
    const settings = settingsOf(mode, value);
    const isTaken = kubeProxyProblems(settings).length === 0;
    found.push({ mode, value, starts: await takes(settings), isTaken });
  }

  expect(found).toEqual([
    ...startings.map(([mode, value]) => ({ mode, value, starts: true, isTaken: true })),
    ...endings.map(([mode, value]) => ({ mode, value, starts: false, isTaken: false })),
  ]);
});
