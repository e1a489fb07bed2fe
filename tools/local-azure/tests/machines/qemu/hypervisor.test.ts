import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { kvmProblem } from "../../../machines/qemu/hypervisor";

const folder = mkdtempSync(join(tmpdir(), "zoned-hypervisor-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A QEMU that does this, on a device that is there. */
function problemWith(...lines: readonly string[]): Promise<string | undefined> {
  const file = join(folder, "qemu");
  writeFileSync(file, ["#!/bin/sh", ...lines].join("\n"));
  chmodSync(file, 0o755);
  const qemu = { version: "1", command: [file], environment: {}, img: [] };
  return kvmProblem(qemu, "/boot/vmlinuz", "/dev/null");
}

const says = (text: string): string => `echo "qemu-system-x86_64: ${text}" >&2`;
const warning = says("warning: host doesn't support requested feature: svm");

it("takes a KVM on which a kernel runs, whatever QEMU warns of before", async () => {
  expect(await problemWith(warning, "sleep 0.3", "echo Linux version 6")).toBeUndefined();
});

it("says why a QEMU ended", async () => {
  expect(await problemWith(warning, says("failed to initialize kvm"), "exit 1")).toBe(
    "failed to initialize kvm",
  );
  expect(await problemWith("exit 3")).toBe("QEMU ended with 3");
});
