import { mkdirSync } from "node:fs";

import { run } from "../commands";

const owner = "zoned mirror";

/**
 * Signs a text with this user's key, which is created at the first use and kept in `home`, so that
 * machines that trust it also trust later states of the mirror.
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
    // gpg starts it, and it would go on running.
    await run("gpgconf", ["--homedir", home, "--kill", "gpg-agent"], {
      signal: AbortSignal.timeout(10_000),
    });
  }
}
