import { existsSync } from "node:fs";

import { fetch } from "../../components/settings/shell-proxy";
import { withTimeLimit } from "../shared/concurrency";

/** How long an official source may take to answer. */
const answerWithin = 5000;

/** Which official sources answer here: each is asked once. */
export class Sources {
  readonly #asked = new Map<string, Promise<boolean>>();

  constructor(private readonly signal: AbortSignal) {}

  /** Whether this address answers; 401 counts, since registries require a token. */
  answers(url: string): Promise<boolean> {
    const known = this.#asked.get(url);
    if (known) return known;
    const asked = this.#ask(url);
    this.#asked.set(url, asked);
    return asked;
  }

  async #ask(url: string): Promise<boolean> {
    try {
      const { status } = await withTimeLimit(answerWithin, this.signal, (signal) =>
        fetch(url, { method: "HEAD", signal }),
      );
      return status < 400 || status === 401;
    } catch {
      this.signal.throwIfAborted();
      return false;
    }
  }
}

/** One thing that a mirror has. */
export interface Item {
  readonly what: string;
  /** Where it came from, in words. */
  readonly from: string;
}

export interface Missing {
  readonly what: string;
  readonly why: string;
  /** The command that sets up a stack without it. */
  readonly without?: string;
}

export interface Report {
  readonly items: readonly Item[];
  readonly missing: readonly Missing[];
}

/** A system that machines may have, and where its packages come from. */
export interface Distribution {
  readonly name: string;
  /** A file of the archive that shows whether it can be reached. */
  readonly archive: string;
  readonly suites: readonly { readonly uri: string; readonly suites: string }[];
  readonly components: string;
  /** The archive's keys, which `keyringPackage` installs. */
  readonly keyring: string;
  readonly keyringPackage: string;
}

export const debian: Distribution = {
  name: "debian-13",
  archive: "http://deb.debian.org/debian/dists/trixie/InRelease",
  suites: [
    { uri: "http://deb.debian.org/debian", suites: "trixie trixie-updates" },
    { uri: "http://deb.debian.org/debian-security", suites: "trixie-security" },
  ],
  components: "main",
  keyring: "/usr/share/keyrings/debian-archive-keyring.gpg",
  keyringPackage: "debian-archive-keyring",
};

/** What the program's machines run on Azure. */
export const ubuntu: Distribution = {
  name: "ubuntu-24.04",
  archive: "http://archive.ubuntu.com/ubuntu/dists/noble/InRelease",
  suites: [
    { uri: "http://archive.ubuntu.com/ubuntu", suites: "noble noble-updates" },
    { uri: "http://security.ubuntu.com/ubuntu", suites: "noble-security" },
  ],
  components: "main universe",
  keyring: "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
  keyringPackage: "ubuntu-keyring",
};

/** All that there may be a mirror for. */
export const distributions: readonly Distribution[] = [ubuntu, debian];

/**
 * The distribution that is asked for; without one, Ubuntu if it can be mirrored here, else Debian.
 * `log` gets the reason for Debian.
 *
 * @param isUbuntus whether there is a mirror for Ubuntu, which stays one while its archive does not answer
 */
export async function chooseDistribution(
  asked: string | undefined,
  sources: Sources,
  log: (text: string) => void,
  isUbuntus: boolean,
): Promise<Distribution> {
  const found = distributions.find(({ name }) => name === asked);
  if (found) return found;
  if (isUbuntus) return ubuntu;
  const hasKeys = existsSync(ubuntu.keyring);
  if (hasKeys && (await sources.answers(ubuntu.archive))) return ubuntu;
  log(
    `machines on Azure run Ubuntu 24.04, whose ${hasKeys ? "archive does not answer here" : `keys are not here (package ${ubuntu.keyringPackage})`}: ` +
      "this is a mirror for Debian 13, which a rehearsal's machines run (--system says otherwise)",
  );
  return debian;
}
