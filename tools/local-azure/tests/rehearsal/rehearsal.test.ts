import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Attachment } from "../../daemon/attachment";
import { Rehearsal } from "../../rehearsal/rehearsal";

let state: string;
beforeEach(() => (state = mkdtempSync(join(tmpdir(), "zoned-rehearsal-"))));
afterEach(() => rmSync(state, { recursive: true }));

const azure: Attachment = {
  ports: { resourceManager: 1, azureNative: 2, tls: 3, kubernetes: 4, proxy: 5, blob: 6, login: 7 },
  authority: "",
  apiAddress: async () => undefined,
};

it.each(["{}", '{"version":3,"checkpo'])(
  "refuses to go on from a state that is %s, asks no engine, and leaves it as it is",
  async (text) => {
    const stacks = join(state, "backend", ".pulumi", "stacks", "zoned");
    mkdirSync(stacks, { recursive: true });
    writeFileSync(join(stacks, "dev.json"), text);
    writeFileSync(join(state, "dev.assumed.json"), "[]");

    const opening = Rehearsal.open({ state, stack: "dev", binaries: "/none", azure });

    await expect(opening).rejects.toThrow(/the state of stack dev, .*dev\.json, is damaged: it is/);
    expect(readFileSync(join(stacks, "dev.json"), "utf8")).toBe(text);
  },
);

it("names a file of settled answers that is damaged", async () => {
  writeFileSync(join(state, "dev.assumed.json"), "[{");

  await expect(Rehearsal.open({ state, stack: "dev", binaries: "/none", azure })).rejects.toThrow(
    `${join(state, "dev.assumed.json")} is damaged`,
  );
});
