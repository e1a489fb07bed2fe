import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Qemu } from "../../../machines/qemu/hypervisor";

/** What a stand-in may call: it finds the paths that QEMU is given, and answers on its sockets. */
const asQemu = `
const fs = require("node:fs");
const pathOf = (id) => /path=([^,]+)/.exec(process.argv.find((word) => word.includes("id=" + id + ",")))[1];
const serve = (id, greeting, answer, begun) => {
  fs.rmSync(pathOf(id), { force: true });
  require("node:net").createServer((client) => {
    client.write(greeting);
    client.on("data", (line) => {
      const { execute, arguments: given } = JSON.parse(line);
      const answered = JSON.stringify({ return: answer(execute, given) ?? {} }) + "\\n";
      client.write(answered, () => execute === "quit" && process.exit(0));
    }).on("error", () => undefined);
  }).listen(pathOf(id), begun);
};
const monitor = (answer, begun) => serve("qmp", '{"QMP": {}}\\n', answer, begun);
`;

/** A program in QEMU's place, in a folder that is its `__dirname`. */
export function standIn(folder: string, program: string): Qemu {
  const file = join(folder, "machine.cjs");
  writeFileSync(file, `${asQemu}${program}`);
  return {
    version: "0",
    command: [process.execPath, file],
    environment: {},
    img: ["sh", "-c", 'for disk; do :; done; touch "$disk"', "sh"],
  };
}
