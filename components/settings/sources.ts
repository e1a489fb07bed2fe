import { statSync } from "node:fs";
import { isAbsolute } from "node:path";

import { found, Problem, toSet } from "./problem";
import { hasLogin } from "./proxy";
import type { Settings } from "./settings";

const url = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined);

/** What apt, curl and containerd read alike, and what a shell leaves alone. Machines have no IPv6 addresses. */
const written = /^https?:\/\/[\w.~-]+(:\d+)?(\/[\w.~%+@:=/-]*)?$/;

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

function mirrorProblems({ mirror }: Settings): Problem[] {
  if (mirror === "") return [];
  const fix = toSet("mirror", "");
  const address = url(mirror);
  if (address?.username || address?.password) {
    return [
      {
        key: "mirror",
        is: "holds a user's name or password",
        expected: "an address without one, since it is written on every machine",
        fix,
      },
    ];
  }
  if (address !== undefined && written.test(mirror)) return [];
  if (isAbsolute(mirror) && isFolder(mirror)) return [];
  return [
    {
      key: "mirror",
      is: found(mirror),
      expected:
        "an address with http:// or https://, of a name or an IPv4 address, and no spaces or signs that need quoting, an absolute path of a folder that exists, or nothing",
      fix,
    },
  ];
}

/** Azure's clouds are known by it letter by letter, and paths are put behind it. */
function endpointProblems({ resourceManagerEndpoint }: Settings): Problem[] {
  const key = "resourceManagerEndpoint";
  const address = url(resourceManagerEndpoint);
  const loopback = ["localhost", "127.0.0.1", "[::1]"].includes(address?.hostname ?? "");
  const isSafe = address?.protocol === "https:" || (address?.protocol === "http:" && loopback);
  if (isSafe && address.origin === resourceManagerEndpoint) return [];
  return [
    {
      key,
      is: hasLogin(resourceManagerEndpoint)
        ? "holds a user's name or password"
        : found(resourceManagerEndpoint),
      expected:
        "an https:// address of a host in lower case and nothing else, since the access token travels there (http:// only on this machine)",
      fix: toSet(key, isSafe ? address.origin : "https://management.azure.com"),
    },
  ];
}

/** What is wrong with the addresses that things are fetched from and asked at. */
export const sourceProblems = (settings: Settings): Problem[] => [
  ...mirrorProblems(settings),
  ...endpointProblems(settings),
];

/** Where machines get packages and images; none of a folder, which serves manifests to this program alone. */
export const machineMirror = (mirror: string): string =>
  /^https?:\/\//.test(mirror) ? mirror.replace(/\/+$/, "") : "";
