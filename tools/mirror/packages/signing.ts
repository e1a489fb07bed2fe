import { mkdirSync } from "node:fs";

import { run } from "../commands";

const owner = "zoned mirror";

/**
 * Signs texts with a key of this user's own, made at the first use and kept in `home`: whoever
 * trusts a mirror's key once, trusts its later states.
 */
export async function clearSign(
  files: { readonly text: string; readonly signed: string; readonly key: string },
  home: string,
  signal: AbortSignal,
): Promise<void> {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const gpg = (...args: string[]) =>
    run("gpg", ["--homedir", home, "--batch", ...args], { signal });
  try {
    const keys = await gpg("--list-secret-keys", "--with-colons");
    if (!/^sec:/m.test(keys)) {
      await gpg("--passphrase", "", "--quick-generate-key", owner, "ed25519", "sign", "never");
    }
    await gpg(
      "--yes",
      "--digest-algo",
      "SHA512",
      "--output",
      files.signed,
      "--clearsign",
      files.text,
    );
    await gpg("--yes", "--armor", "--output", files.key, "--export", owner);
  } finally {
    // It starts by itself and stays.
    await run("gpgconf", ["--homedir", home, "--kill", "gpg-agent"], {
      signal: AbortSignal.timeout(10_000),
    });
  }
}
