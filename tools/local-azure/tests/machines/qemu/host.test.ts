import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { testFolder } from "../../../../../tests/support/test-folder";
import { tryLock } from "../../../../shared/lock";
import { identityOf } from "../../../../shared/pids";
import { Progress } from "../../../../shared/progress";
import { kvmProblem } from "../../../machines/qemu/hypervisor";
import { prepareHost, prepareMachines } from "../../../machines/qemu/prepare";
import { takenMib } from "../../../machines/qemu/qemu";
import { checkFits, mostCores, neededMib, outnumberHostCores } from "../../../machines/qemu/sizes";
import { lacking } from "../../../machines/qemu/image/base-image";

const folder = testFolder();
afterEach(() => jest.restoreAllMocks());

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

it("everything that a host lacks for real machines is named at once", async () => {
  jest.spyOn(process, "getuid").mockReturnValue(0);
  jest.replaceProperty(process, "env", { ...process.env, PATH: "/nowhere" });
  const options = { progress: new Progress(), signal: AbortSignal.timeout(10_000) };

  await expect(prepareHost(options)).rejects.toThrow(
    /mmdebstrap, .*gpg, .* not installed: sudo apt-get install .* mmdebstrap .* gnupg/,
  );
});

it("only one process at a time makes what its cache lacks, whose drafts another would remove", async () => {
  tryLock(join(folder, "machines.lock"));
  jest.replaceProperty(process, "env", { ...process.env, PATH: "/nowhere" });
  const options = { cache: folder, progress: new Progress(), signal: AbortSignal.timeout(10_000) };

  await expect(
    prepareMachines({ ...options, scale: 1, kubernetes: ["1.37.2"], cloudProvider: false }),
  ).rejects.toThrow(`process ${process.pid} prepares real machines in ${folder}: wait for it`);
});

test("the memory of machines that a killed local Azure has left is theirs already", () => {
  expect(takenMib(folder)).toBe(0);
  for (const [name, pid] of Object.entries({ runs: process.pid, ended: 999_999_999 })) {
    const place = join(folder, "machines", "guests", name);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, "qemu.pid"), JSON.stringify(identityOf(pid)));
  }

  const own = process.memoryUsage().rss / 1024 / 1024;
  expect(takenMib(folder)).toBeGreaterThan(own / 2);
  expect(takenMib(folder)).toBeLessThan(own * 2);
});

const three = ["cp-1", "workers-1", "workers-2"].map((name) => ({ name, size: "Standard_B2s" }));

test("machines that just fit are admitted, and one MiB less refuses them", () => {
  const needed = neededMib(three, 0.75, "tcg");
  expect(needed).toBe(3 * (3072 + 2176));
  expect(() => checkFits(three, 0.75, "tcg", needed)).not.toThrow();
  expect(() => checkFits(three, 0.75, "tcg", needed - 1)).toThrow("--scale");
  // Translated code takes nothing where KVM runs the processors.
  expect(neededMib(three, 0.75, "kvm")).toBe(3 * (3072 + 128));
});

test("a refusal shows the arithmetic and a scale that would do, if there is one", () => {
  const fits = (scale: number, memoryMib: number) => checkFits(three, scale, "tcg", memoryMib);

  expect(() => fits(0.75, 12288)).toThrow(/15\.4 GiB.*3 × Standard_B2s.*12\.0 GiB.*--scale 0\.45/);
  expect(() => fits(0.45, 12288)).not.toThrow();
  expect(() => fits(0.75, 2048)).toThrow("take smaller sizes or fewer machines");
});

test.each([
  ["that is waited for", 16, true, false, 16],
  ["that is waited for", 1, true, false, 2],
  ["that nobody waits for", 16, false, false, 1],
  ["that is one of too many", 2, true, true, 1],
])(
  "a machine %s has of %i processors here (%s, %s) %i at most",
  (_, cores, isWaitedFor, oneVcpuEach, most) => {
    expect(mostCores(cores, isWaitedFor, oneVcpuEach)).toBe(most);
  },
);

test("control planes are too many where they outnumber the processors and kubeadm does not mind", () => {
  expect(outnumberHostCores(3, 2, ["NumCPU"])).toBe(true);
  expect(outnumberHostCores(3, 2, [])).toBe(false);
  expect(outnumberHostCores(3, 4, ["NumCPU"])).toBe(false);
});

describe("a disk for machines", () => {
  const folder = testFolder();

  const own = ["registry.k8s.io/kube-proxy:v2", "registry.k8s.io/pause:3"];
  const other = "registry.k8s.io/kube-proxy:v1";
  const addOn = "ghcr.io/flannel-io/flannel:v7";

  const images = { "2": own, "1": [other, own[1]!] };
  mkdirSync(join(folder, "images"));
  const manifests = [...own, other, addOn].map((name) => ({
    annotations: { "io.containerd.image.name": name },
  }));
  writeFileSync(join(folder, "images", "index.json"), JSON.stringify({ manifests }));

  it.each([
    ["of other versions", false, [other]],
    [
      "of add-ons too where it is to pull them, as a machine of Ubuntu's image",
      true,
      [other, addOn],
    ],
  ])("begins without images %s", (_, pullsAddOns, expected) => {
    expect(lacking({ folder, images }, "2", pullsAddOns)).toEqual(expected);
  });
});
