import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { testFolder } from "../../../../../tests/support/test-folder";
import type { VirtualMachine } from "../../../machines/machines";
import { Guest } from "../../../machines/qemu/guest/guest";
import type { Host } from "../../../machines/qemu/host";
import type { Namespaces } from "../../../machines/qemu/network/namespaces";
import type { Plug } from "../../../machines/qemu/network/network-view";
import { niceness } from "../../../machines/qemu/sizes";
import { standIn } from "../../support/qemu/fixture";

/**
 * Stands for QEMU: it writes down its commands, its agent answers, and a script ends when its
 * exit code lies beside this file.
 */
const machine = `
const programs = [];
const answers = {
  "guest-sync": ({ id }) => id,
  "guest-exec": ({ arg }) => ({ pid: programs.push(arg.join()) - 1 }),
  "guest-exec-status": ({ pid }) => {
    const code = __dirname + "/exit-code";
    if (!programs[pid].includes("./script.sh")) return { exited: true, exitcode: 0 };
    return fs.existsSync(code) ? { exited: true, exitcode: Number(fs.readFileSync(code)) } : { exited: false };
  },
};
serve("agent", "", (execute, given) => answers[execute]?.(given));
monitor((execute, given) => {
  fs.appendFileSync(__dirname + "/commands", JSON.stringify([execute, given ?? null]) + "\\n");
  if (execute === "query-migrate") return { status: "completed" };
});
`;

const vm: VirtualMachine = {
  ...{ id: "/vm", name: "one", vmId: "4bd1cad0-e818", location: "southeastasia" },
  ...{ size: "Standard_B2s", resourceGroup: "rg", subscriptionId: "s", privateAddress: "" },
  ...{ image: "debian", identities: [], isOff: false },
};
const plug: Plug = {
  ...{ network: "n", tap: "t", mac: "00:0d:3a:00:00:01", address: "172.16.1.9" },
  ...{ isBalanced: false, isFirst: false },
  subnet: { prefix: "172.16.1.0/24", gateway: "172.16.1.1" } as Plug["subnet"],
};
const initialControlPlane: Plug = { ...plug, isBalanced: true, isFirst: true };
const further: Plug = { ...plug, isBalanced: true };

let folder: string;
let guest: Guest;
let hasSnapshot: boolean;
beforeEach(() => {
  folder = testFolder();
  hasSnapshot = true;
});
afterEach(() => guest.remove());

async function boot(where: Plug, image = vm.image): Promise<void> {
  const host: Host = {
    qemu: standIn(folder, machine),
    namespaces: {
      plug: async () => undefined,
      of: () => "",
      within: (_: string, command: readonly string[]) => [...command],
    } as Partial<Namespaces> as Namespaces,
    snapshots: {
      of: async () => {
        writeFileSync(join(folder, "serial"), "Linux version 6\n");
        return hasSnapshot
          ? {
              disk: { path: "", format: "qcow2" },
              memory: "/snapshot/memory",
              serial: join(folder, "serial"),
            }
          : undefined;
      },
      stop: async () => undefined,
    },
    image: { disk: "", kernel: "", initrd: "" },
    ...{
      accelerator: "tcg",
      mirror: "",
      cloudProvider: false,
      scale: 1,
      cores: 2,
      oneVcpuEach: false,
    },
    ...{ machines: folder, images: folder, sockets: folder, log: () => undefined },
  };
  guest = Guest.of({ ...vm, image }, host);
  await guest.boot(where);
  await guest.awaitAgent();
}

const processOf = (): number => {
  const place = readdirSync(folder).find((name) => existsSync(join(folder, name, "qemu.pid")))!;
  return JSON.parse(readFileSync(join(folder, place, "qemu.pid"), "utf8")).pid;
};
const wordsOf = (): string[] =>
  readFileSync(`/proc/${processOf()}/cmdline`, "utf8").split("\0").slice(0, -1);
const commands = (): [string, object | null][] =>
  readFileSync(join(folder, "commands"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
const own = [
  { driver: "virtio-blk-pci", drive: "seed", bus: "seed-port" },
  { driver: "virtio-net-pci", netdev: "nic", mac: plug.mac, bus: "nic-port" },
];
const givesWay = (): boolean => getPriority(processOf()) === niceness.givingWay;

test("a machine gives way until its script begins, unless it is the first behind a balancer", async () => {
  await boot(initialControlPlane);
  expect(givesWay()).toBe(false);
  expect(wordsOf().join(" ")).toContain(" -smp 2 ");
  await guest.remove();

  await boot(further);
  expect(givesWay()).toBe(true);
  const running = guest.runScript("true");
  while (givesWay()) await wait(20);
  writeFileSync(join(folder, "exit-code"), "7");
  expect((await running).exitCode).toBe(7);
});

test("a new machine goes on from a snapshot, and gets its own seed and interface before it does", async () => {
  await boot(plug);
  expect(wordsOf().slice(-3)).toEqual(["-S", "-incoming", "file:/snapshot/memory"]);
  expect(wordsOf().join(" ")).toContain(" -smp 1 ");
  expect(commands().slice(-3)).toEqual([
    ...own.map((device) => ["device_add", device]),
    ["cont", null],
  ]);
  expect(readFileSync(guest.files.serial, "utf8")).toBe("Linux version 6\n");
});

test("without a snapshot it has both from the start, as one has that is switched on again", async () => {
  const atOnce = own.flatMap((device) => ["-device", JSON.stringify(device)]);
  hasSnapshot = false;
  await boot(plug);
  expect(wordsOf().slice(-4)).toEqual(atOnce);
  await guest.remove();

  hasSnapshot = true;
  await boot(plug);
  await guest.cutPower();
  await boot(plug);
  expect(wordsOf().slice(-4)).toEqual(atOnce);
});

test("one that was not woken, since the local Azure was killed, begins anew", async () => {
  await boot(plug);
  const first = processOf();
  renameSync(guest.files.disk, `${guest.files.disk}.new`);

  await boot(plug);

  expect(processOf()).not.toBe(first);
  expect(wordsOf()).toContain("-incoming");
});

test("an image is all of a machine's disk, and a machine of it goes on from no snapshot", async () => {
  const image = "/subscriptions/s/galleries/zoned/images/node/versions/1.0.0";
  await boot(plug);
  await guest.cutPower();
  await guest.capture(image);
  await guest.remove();

  await boot(plug, image);
  expect(wordsOf()).not.toContain("-incoming");
  await guest.remove();

  await expect(boot(plug, `${image}1`)).rejects.toThrow(/no disk of image .*1\.0\.01/);
});

test("a machine that was never switched on has not died", () => {
  guest = Guest.of(vm, { machines: folder, sockets: folder } as Host);
  expect([guest.power, guest.hasShutDown]).toEqual(["stopped", false]);
});
