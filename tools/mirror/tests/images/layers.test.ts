import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { packDeb } from "../../packages/deb";
import { packLayer } from "../../images/layers";
import { run } from "../../commands";
import { testFolder } from "../support/fixture";

const folder = testFolder();
const { signal } = new AbortController();

it("gives busybox's layer its commands, and folders that anybody may write in", async () => {
  const program = join(folder, "program");
  writeFileSync(program, "#!/bin/sh\nprintf 'busybox\\nls\\n'\n", { mode: 0o755 });
  const file = join(folder, "busybox.deb");
  const draft = join(folder, "draft");
  mkdirSync(draft);
  const recipe = { name: "busybox-static", version: "1", depends: [], description: "a stand-in" };
  await packDeb(
    { ...recipe, binaries: { "/usr/bin/busybox": "" } },
    file,
    draft,
    async () => program,
    signal,
  );
  const debian = { name: recipe.name, version: recipe.version, fields: new Map(), file };
  const layer = join(folder, "layer.tar");

  await packLayer({ kind: "busybox", folders: ["tmp"] }, join(folder, "tree"), layer, {
    pathOf: async () => program,
    debianPackages: async () => [debian],
    signal,
  });

  const list = await run("tar", ["--list", "--verbose", "--file", layer], { signal });
  expect(list).toMatch(/^drwxrwxrwt .* \.\/tmp\/$/m);
  expect(list).toMatch(/ \.\/usr\/bin\/ls -> busybox$/m);
});
