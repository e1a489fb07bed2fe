import { setTimeout as pause } from "node:timers/promises";

import * as pulumi from "@pulumi/pulumi";

import { connect } from "../azure/resource-manager";
import { computeVersion, powerIn } from "../azure/state";
import type { Settings } from "../settings/settings";

/** generalize.sh begins a minute after its step has ended, and needs another one. */
const offWithin = 15 * 60_000;
const look = 5_000;

interface View {
  readonly statuses?: readonly { readonly code: string; readonly message?: string }[];
}

/**
 * What the script has written, of which Azure keeps the last 4 KB.
 *
 * @param step id of an extension
 * @throws RunError where Azure shows nothing of it
 */
export async function outputOf(step: string, settings: Settings): Promise<string> {
  const { arm } = await connect(settings);
  const query = { ...computeVersion, $expand: "instanceView" };
  const shown = await arm.get<{ readonly properties: { readonly instanceView?: View } }>(
    step,
    query,
    { properties: {} },
  );
  const message = shown?.properties.instanceView?.statuses?.[0]?.message ?? "";
  const written = /\[stdout\]\n([^]*?)\n*\[stderr\]/.exec(message)?.[1]?.trim() ?? "";
  if (!/^package /m.test(written)) {
    throw new pulumi.RunError(
      `Azure shows ${JSON.stringify(message.slice(0, 200))} of ${step}, which has ended, expected what the image has: a list with packages. ` +
        "Run npm run image again, which makes another machine.",
    );
  }
  // The list's first line.
  if (!written.startsWith("setting ")) {
    void pulumi.log.warn(
      "Azure keeps the last 4 KB of what the image has, and it is longer: the image itself has all of it in /opt/zoned/image",
    );
  }
  return written;
}

/**
 * Marks a machine as one for images, once it has switched itself off; not in a preview. One that is marked stays so.
 *
 * @param machine its id, which is returned
 * @throws RunError where it stays on
 */
export async function captureWhenOff(machine: string, settings: Settings): Promise<string> {
  if (pulumi.runtime.isDryRun()) return machine;
  const { arm } = await connect(settings);
  const view = () => arm.get<View>(`${machine}/instanceView`, computeVersion, {});
  const until = Date.now() + offWithin;
  for (let now = await view(); ; now = await view()) {
    if (now?.statuses?.some(({ code }) => code === "OSState/generalized")) return machine;
    if (["stopped", "deallocated"].includes(powerIn(now) ?? "")) break;
    if (Date.now() > until) {
      throw new pulumi.RunError(
        `${machine} was to forget who it is and to switch itself off, and still runs after ${offWithin / 60_000} minutes: ` +
          "its console says why (az vm boot-diagnostics get-boot-log --ids ID). Run npm run image again, which makes another machine.",
      );
    }
    await pause(look);
  }
  await arm.act(`${machine}/deallocate`, computeVersion);
  await arm.act(`${machine}/generalize`, computeVersion);
  return machine;
}
