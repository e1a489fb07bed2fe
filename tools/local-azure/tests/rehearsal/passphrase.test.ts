import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { passphraseOf } from "../../rehearsal/passphrase";

let state: string;
beforeEach(() => (state = mkdtempSync(join(tmpdir(), "zoned-passphrase-"))));
afterEach(() => rmSync(state, { recursive: true }));

it("makes one, keeps it for its owner alone, and uses it again", () => {
  const first = passphraseOf(state, {});

  expect(first.length).toBeGreaterThan(20);
  expect(passphraseOf(state, {})).toBe(first);
  expect(statSync(join(state, "passphrase")).mode & 0o777).toBe(0o600);
});

it("takes the user's own, also an empty one, and from a file", () => {
  expect(passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "" })).toBe("");
  const file = join(state, "mine");
  writeFileSync(file, "hunter2\n");
  rmSync(join(state, "passphrase.check"));
  expect(passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE_FILE: file })).toBe("hunter2");
});

it("says of a file that cannot be read where it was named", () => {
  expect(() => passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE_FILE: "/nowhere/it" })).toThrow(
    /^PULUMI_CONFIG_PASSPHRASE_FILE names \/nowhere\/it, which cannot be read \(ENOENT/,
  );
});

it("refuses another than the first, and says how to go on", () => {
  passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "right" });

  expect(passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "right" })).toBe("right");
  expect(() => passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "wrong" })).toThrow(
    /^wrong passphrase: PULUMI_CONFIG_PASSPHRASE is another one.*set PULUMI_CONFIG_PASSPHRASE to the one.*--discard/,
  );
  expect(() => passphraseOf(state, {})).toThrow(/PULUMI_CONFIG_PASSPHRASE is not set/);
});

it("refuses the user's own where the rehearsal began with one of its own", () => {
  passphraseOf(state, {});

  expect(() => passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "mine" })).toThrow(
    /unset PULUMI_CONFIG_PASSPHRASE/,
  );
});

it("keeps no passphrase of the user's", () => {
  passphraseOf(state, { PULUMI_CONFIG_PASSPHRASE: "hunter2" });

  expect(() => statSync(join(state, "passphrase"))).toThrow();
});
