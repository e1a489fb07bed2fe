import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { waiting } from "../../../../machines/qemu/image/debian";
import { Snapshots } from "../../../../machines/qemu/guest/snapshots";
import { standIn } from "../../../support/qemu/fixture";

/**
 * Stands for QEMU: it says on its console that it waits, and writes its memory where its arguments say.
 */
const machine = `
fs.appendFileSync(__dirname + "/booted", process.argv.join(" ") + "\\n");
if (fs.existsSync(__dirname + "/broken")) {
  console.error("no such processor");
  process.exit(1);
}
const waits = () => fs.existsSync(__dirname + "/slow") || fs.writeFileSync(pathOf("serial"), ${JSON.stringify(waiting)});
monitor((execute, given) => {
  if (execute === "migrate") fs.writeFileSync(given.uri.replace("file:", ""), "memory");
  if (execute === "query-migrate") return { status: "completed" };
}, waits);
`;

let folder: string;
let said: string[];
const cache = () => join(folder, "base");
const booted = (): string[] =>
  readFileSync(join(folder, "booted"), "utf8").trim().split("\n").filter(Boolean);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zoned-snapshots-"));
  said = [];
  mkdirSync(cache());
  writeFileSync(join(folder, "booted"), "");
});
afterEach(() => rmSync(folder, { recursive: true }));

const snapshots = (accelerator: "tcg" | "kvm" = "tcg"): Snapshots =>
  new Snapshots(
    {
      qemu: standIn(folder, machine),
      accelerator,
      image: { disk: join(cache(), "disk"), kernel: "", initrd: "" },
    },
    join(folder, "run"),
    (line) => said.push(line),
  );

const shape = { cores: 1, memoryMib: 3072 };

test("one machine boots for all of a shape, and for those of the next start", async () => {
  const these = snapshots();
  const [first, second] = await Promise.all([these.of(shape), these.of(shape)]);
  const later = await snapshots().of(shape);

  expect(booted()).toHaveLength(1);
  expect(second).toEqual(first);
  expect(later).toEqual(first);
  expect(readFileSync(first!.memory, "utf8")).toBe("memory");
  expect(readFileSync(first!.serial, "utf8")).toContain(waiting);
  expect(existsSync(first!.disk.path)).toBe(true);
  expect(said[0]).toContain("1 processor and 3072 MiB");
});

test("another shape has another snapshot", async () => {
  const these = snapshots();
  expect(await these.of({ ...shape, cores: 2 })).not.toEqual(await these.of(shape));
  expect(booted()).toHaveLength(2);
});

test("it boots as a machine without a VM: with no seed and no interface, and waits for them", async () => {
  await snapshots().of(shape);
  const [words = ""] = booted();
  expect(words).toMatch(/-append [^-]*root=\/dev\/vda .* zoned\.snapshot /);
  expect(words).not.toMatch(/cidata|virtio-net/);
});

test("what cannot boot is reported with its words and leaves nothing, and the next machine tries again", async () => {
  const these = snapshots();
  writeFileSync(join(folder, "broken"), "");
  await expect(these.of(shape)).rejects.toThrow("no such processor");
  expect(readdirSync(cache())).toEqual([]);
  expect(readdirSync(join(folder, "run"))).toEqual([]);

  rmSync(join(folder, "broken"));
  expect(await these.of(shape)).toBeDefined();
});

test("a local Azure that is stopped meanwhile ends it, and leaves nothing of it", async () => {
  const these = snapshots();
  writeFileSync(join(folder, "slow"), "");
  const made = these.of(shape);
  while (booted().length === 0) await wait(20);
  await Promise.all([these.stop(), expect(made).rejects.toThrow()]);
  expect(readdirSync(cache())).toEqual([]);
  expect(readdirSync(join(folder, "run"))).toEqual([]);
});

test("one that was stopped before makes none", async () => {
  const these = snapshots();
  await these.stop();
  await expect(these.of(shape)).rejects.toThrow();
  await wait(200);
  expect(booted()).toEqual([]);
});

test("with KVM a machine boots by itself, which takes seconds", async () => {
  expect(await snapshots("kvm").of(shape)).toBeUndefined();
});
