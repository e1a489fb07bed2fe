import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { listen } from "../../../tests/support/listen";
import { NoAnswer, save, unpack } from "../downloads";
import { testFolder } from "../../../tests/support/test-folder";

const folder = testFolder();
const server = createServer((_, response) => response.end("a program"));
let url: string;
beforeAll(async () => {
  url = `http://127.0.0.1:${await listen(server)}/program`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const step = { update: () => undefined, done: () => undefined };
const never = new AbortController().signal;

/** A disk that is full, as Linux has one for tests. */
const full = "/dev/full";

it("says of a full disk that it is full, not that the source does not answer", async () => {
  const saving = save(url, full, step, never);

  await expect(saving).rejects.toThrow(`${full} cannot be written: the disk is full; make room`);
  await expect(saving).rejects.not.toBeInstanceOf(NoAnswer);
});

it("says so of an archive that is unpacked", async () => {
  writeFileSync(join(folder, "program"), "a program");
  const archive = join(folder, "archive.tar");
  spawnSync("tar", ["-cf", archive, "-C", folder, "program"]);

  await expect(unpack(archive, "program", full)).rejects.toThrow(
    `${full} cannot be written: the disk is full`,
  );
});

it("says of a source that is not there that it does not answer", async () => {
  const file = join(folder, "saved");

  await expect(save("http://127.0.0.1:1/program", file, step, never)).rejects.toThrow(NoAnswer);
  await expect(save(url, file, step, never)).resolves.toMatch(/^[0-9a-f]{64}$/);
});
