import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { PayloadFile } from "../kubeadm/payload-file";

/** Text of a file in `cloud-init/`. */
export const cloudInitText = (path: string): string =>
  readFileSync(join(__dirname, "../../cloud-init", path), "utf8");

/** A script of `cloud-init/`, for root alone. */
export const scriptFile = (name: string): PayloadFile => ({
  path: `/opt/zoned/${name}`,
  mode: "0700",
  content: cloudInitText(name),
});

/**
 * A systemd unit of `cloud-init/units/`.
 *
 * @param values of the names that stand as `@NAME@` in it
 */
export const unitFile = (name: string, values: Record<string, string> = {}): PayloadFile => ({
  path: `/etc/systemd/system/${name}`,
  mode: "0644",
  content: cloudInitText(`units/${name}`).replace(/@([A-Z]+)@/g, (_, key: string) => values[key]!),
});
