import { randomBytes, scryptSync, timingSafeEqual } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { writeWhole } from "../../shared/files";
import { UserError } from "../../shared/user-error";

/** The user's own passphrase, as the engine would find it. */
function fromEnvironment(env: NodeJS.ProcessEnv): string | undefined {
  const { PULUMI_CONFIG_PASSPHRASE: text, PULUMI_CONFIG_PASSPHRASE_FILE: file } = env;
  if (text !== undefined) return text;
  try {
    return file === undefined ? undefined : readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new UserError(
      `PULUMI_CONFIG_PASSPHRASE_FILE names ${file}, which cannot be read (${(error as Error).message}): ` +
        "name the file with the passphrase, or unset it for one that the rehearsal makes itself",
    );
  }
}

/**
 * The passphrase that this rehearsal's secrets are encrypted with: the user's own, else a random
 * one that is kept beside them.
 *
 * @throws UserError when the user's own is not the one that the rehearsal was started with
 */
export function passphraseOf(state: string, env: NodeJS.ProcessEnv = process.env): string {
  const kept = join(state, "passphrase");
  const check = join(state, "passphrase.check");
  const own = fromEnvironment(env);
  if (own === undefined) {
    if (existsSync(kept)) return readFileSync(kept, "utf8");
    if (existsSync(check)) throw wrong("is not set", state);
    const random = randomBytes(24).toString("base64url");
    writeWhole(kept, random);
    return random;
  }
  if (existsSync(kept)) {
    if (readFileSync(kept, "utf8") !== own) throw wrong("is another one", state);
  } else if (existsSync(check)) {
    if (!matches(readFileSync(check, "utf8"), own)) throw wrong("is another one", state);
  } else {
    const salt = randomBytes(16);
    writeWhole(check, `${salt.toString("hex")}:${scryptSync(own, salt, 32).toString("hex")}`);
  }
  return own;
}

function matches(check: string, passphrase: string): boolean {
  const [salt, hash] = check.split(":").map((part) => Buffer.from(part, "hex"));
  if (!salt || hash?.length !== 32) return false;
  return timingSafeEqual(hash, scryptSync(passphrase, salt, 32));
}

function wrong(what: string, state: string): UserError {
  const remedy = existsSync(join(state, "passphrase"))
    ? "the rehearsal was started with one of its own: unset PULUMI_CONFIG_PASSPHRASE and PULUMI_CONFIG_PASSPHRASE_FILE"
    : "set PULUMI_CONFIG_PASSPHRASE to the one it was started with";
  return new UserError(
    `wrong passphrase: PULUMI_CONFIG_PASSPHRASE ${what}, and the secrets in ${state} cannot be read without the first one; ` +
      `${remedy}, or give the rehearsal up: npm stop -- --discard`,
  );
}
