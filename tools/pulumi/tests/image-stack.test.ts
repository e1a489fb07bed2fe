import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { testFolder } from "../../../tests/support/test-folder";
import { openImageStack } from "../image-stack";

const program = testFolder();
const config = join(program, "Pulumi.prod.yaml");
const own = join(program, "Pulumi.prod-image.yaml");

/** Opens the stack of an image with a pulumi that ends so, and says what that was told. */
async function open(
  ended: { code: number; stderr: string } = { code: 0, stderr: "" },
  cluster = "prod",
) {
  const told: string[] = [];
  const pulumi = async (words: readonly string[]) => {
    told.push(words.join(" "));
    writeFileSync(own, "encryptionsalt: v1:other\n");
    return { stdout: "", ...ended };
  };
  await openImageStack({ cluster, config, program, pulumi });
  return told;
}

it.each([
  ["encryptionsalt: v1:salt\n", "stack init prod-image --no-select"],
  [
    "secretsprovider: azurekeyvault://keys.vault.azure.net/keys/state\nencryptedkey: abc\n",
    "stack init prod-image --no-select --secrets-provider azurekeyvault://keys.vault.azure.net/keys/state",
  ],
])(
  "is encrypted as the cluster's stack (%j), and has no settings of its own",
  async (file, init) => {
    writeFileSync(config, file);

    expect(await open()).toEqual([init]);
    expect(existsSync(own)).toBe(false);
  },
);

it("is of the organization of the cluster's stack", async () => {
  writeFileSync(config, "");

  expect(await open(undefined, "org/prod")).toEqual(["stack init org/prod-image --no-select"]);
  expect(existsSync(own)).toBe(false);
});

it("is taken up where it is there already", async () => {
  writeFileSync(config, "");

  await open({ code: 255, stderr: "error: stack 'prod-image' already exists" });
  await expect(open({ code: 255, stderr: "error: no backend" })).rejects.toThrow(/no backend/);
});

it("is refused without a cluster's settings", async () => {
  rmSync(config);

  await expect(open()).rejects.toThrow(/there is no stack prod: expected its settings in /);
});
