import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import type { VirtualMachine } from "../machines";
import { Guest } from "./guest";
import type { Host } from "./host";
import type { Namespaces } from "./namespaces";
import type { Plug } from "./network-view";

/** Stands for QEMU: its agent answers, and a script ends when its exit code lies beside this file. */
const machine = `
const { existsSync, readFileSync, rmSync } = require("node:fs");
const [socket] = process.argv.filter((word) => word.includes("id=agent,")).map((word) => /path=([^,]+)/.exec(word)[1]);
const programs = [];
const answers = {
  "guest-sync": ({ id }) => id,
  "guest-exec": ({ path }) => ({ pid: programs.push(path) - 1 }),
  "guest-exec-status": ({ pid }) => {
    const code = __dirname + "/exit-code";
    if (!programs[pid].endsWith("systemd-run")) return { exited: true, exitcode: 0 };
    return existsSync(code) ? { exited: true, exitcode: Number(readFileSync(code)) } : { exited: false };
  },
};
rmSync(socket, { force: true });
require("node:net").createServer((client) => client.on("data", (line) => {
  const { execute, arguments: given } = JSON.parse(line);
  client.write(JSON.stringify({ return: answers[execute]?.(given) ?? {} }) + "\\n");
}).on("error", () => undefined)).listen(socket);
`;

const vm: VirtualMachine = {
  ...{ id: "/vm", name: "one", vmId: "4bd1cad0-e818", location: "southeastasia" },
  ...{ size: "Standard_B2s", resourceGroup: "rg", subscriptionId: "s", privateAddress: "" },
  image: "debian",
};
const plug: Plug = {
  ...{ network: "n", tap: "t", mac: "00:0d:3a:00:00:01", address: "172.16.1.9" },
  ...{ isBalanced: false, isFirst: false },
  subnet: { prefix: "172.16.1.0/24", gateway: "172.16.1.1" } as Plug["subnet"],
};
const founder: Plug = { ...plug, isBalanced: true, isFirst: true };
const further: Plug = { ...plug, isBalanced: true };

let folder: string;
let guest: Guest;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "zoned-guest-"))));
afterEach(async () => {
  await guest.remove();
  rmSync(folder, { recursive: true });
});

async function boot(where: Plug, isCrowded = false): Promise<void> {
  writeFileSync(join(folder, "machine.cjs"), machine);
  const host: Host = {
    qemu: {
      version: "0",
      command: [process.execPath, join(folder, "machine.cjs")],
      environment: {},
      img: ["sh", "-c", 'for disk; do :; done; touch "$disk"', "sh"],
    },
    namespaces: {
      plug: async () => undefined,
      of: () => "",
      within: (_: string, command: readonly string[]) => [...command],
    } as Partial<Namespaces> as Namespaces,
    image: { disk: "", kernel: "", initrd: "" },
    ...{ accelerator: "tcg", mirror: "", scale: 1, cores: 2, isCrowded },
    ...{ machines: folder, sockets: folder, log: () => undefined },
  };
  guest = Guest.of(vm, host);
  await guest.boot(where);
  await guest.awaitAgent();
}

const processOf = (): number => {
  const place = readdirSync(folder).find((name) => existsSync(join(folder, name, "qemu.pid")))!;
  return JSON.parse(readFileSync(join(folder, place, "qemu.pid"), "utf8")).pid;
};
const givesWay = (): boolean => getPriority(processOf()) > 0;
const endScript = (exitCode: number): void =>
  writeFileSync(join(folder, "exit-code"), `${exitCode}`);

test("a machine gives way while it boots, unless it is the first behind a balancer", async () => {
  await boot(founder);
  expect(givesWay()).toBe(false);
  await guest.remove();

  for (const other of [further, plug]) {
    await boot(other);
    expect(givesWay()).toBe(true);
    await guest.remove();
  }
});

test("one that is waited for gives way no longer as soon as its script begins", async () => {
  await boot(further);
  const running = guest.runScript("true", true);
  while (givesWay()) await wait(20);
  endScript(0);
  expect((await running).exitCode).toBe(0);
});

test("another goes on giving way until its script has ended well", async () => {
  await boot(plug);
  endScript(7);
  expect((await guest.runScript("true", false)).exitCode).toBe(7);
  expect(givesWay()).toBe(true);

  endScript(0);
  await guest.runScript("true", false);
  expect(givesWay()).toBe(false);
});

test("a machine that is switched on again does not give way", async () => {
  await boot(plug);
  await guest.cutPower();
  await boot(plug);
  expect(givesWay()).toBe(false);
});

test.each([
  { name: "a control plane has both processors", where: founder, isCrowded: false, cores: "2" },
  { name: "one of too many has one", where: founder, isCrowded: true, cores: "1" },
  { name: "a worker has one", where: plug, isCrowded: false, cores: "1" },
])("$name", async ({ where, isCrowded, cores }) => {
  await boot(where, isCrowded);
  const words = readFileSync(`/proc/${processOf()}/cmdline`, "utf8").split("\0");
  expect(words[words.indexOf("-smp") + 1]).toBe(cores);
});
