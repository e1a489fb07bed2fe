import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";

import { isRecord } from "../../components/settings/read";
import {
  argumentsOf,
  type KnownArguments,
  type KnownRelease,
} from "../../components/settings/rules/known-arguments";
import { minorOf } from "../../components/versions";
import { environment, goProblem } from "../programs/builds";
import { current, previousMinor, type Release } from "../programs/releases";
import { checkout } from "../shared/checkout";

const modules = join(checkout, "tools/programs/modules");

const kubernetes = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"];

/** What one program takes, by Go files that are linked with its own packages: `print.go`, `etcd.go`. */
async function ask(module: string, files: readonly string[]): Promise<KnownArguments> {
  const words = ["run", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", ...files];
  const cwd = join(modules, module);
  const options = { cwd, env: environment(), maxBuffer: 64 << 20 };
  const { stdout } = await promisify(execFile)("go", words, options);
  return JSON.parse(stdout) as KnownArguments;
}

/** Flags, feature gates and known values of every program of a release that takes arguments. */
async function ofRelease({ sources }: Release): Promise<Record<string, KnownArguments>> {
  const found: Record<string, KnownArguments> = {};
  for (const program of kubernetes) {
    const files = ["print.go", `${program}.go`];
    found[program] = await ask(
      `${sources}kubernetes`,
      files.map((file) => join(modules, "kubernetes/arguments", file)),
    );
  }
  found["etcd"] = await ask(`${sources}etcd`, [join(modules, "etcd/arguments/etcd.go")]);
  return found;
}

/** The same with the gates of Kubernetes once: its programs are linked with the same packages. */
function fold(found: Readonly<Record<string, KnownArguments>>): KnownRelease {
  const featureGates = Object.assign({}, ...kubernetes.map((name) => found[name]!.featureGates));
  const { dependencies } = found[kubernetes[0]!]!;
  const own = kubernetes.map((name) => {
    const { flags, values, featureGates: gates } = found[name]!;
    const without = Object.keys(featureGates).filter((gate) => !(gate in gates));
    return [name, { flags, values, ...(without.length > 0 && { without }) }] as const;
  });
  const programs = { ...found, ...Object.fromEntries(own) };
  const release = { featureGates, dependencies, programs };
  for (const [program, known] of Object.entries(found)) {
    if (!isDeepStrictEqual(argumentsOf(release, program), known)) {
      throw new Error(
        `${program} has a feature gate, or what a gate depends on, otherwise than kube-apiserver, expected the same state in all programs of a release: let KnownRelease keep both`,
      );
    }
  }
  return release;
}

type Values = Readonly<Record<string, unknown>>;

/** The JSON merge patch by which `patched` makes one of the other; neither has a null. */
export function patchOf(from: Values, to: Values): Values {
  const names = Object.keys({ ...from, ...to }).sort();
  const changes = names.flatMap((name) => {
    const [before, after = null] = [from[name], to[name]];
    if (isDeepStrictEqual(before, after)) return [];
    return [[name, isRecord(before) && isRecord(after) ? patchOf(before, after) : after]];
  });
  return Object.fromEntries(changes);
}

/** JSON with a list a line. */
const written = (release: object): string =>
  JSON.stringify(release, null, 2).replace(
    /\[\n([^]*?)\n *\]/g,
    (_, list: string) => `[${list.trim().replace(/,\n */g, ", ")}]`,
  ) + "\n";

/** Writes what each program takes on its command line, by minor, for the settings' checks. */
async function main(): Promise<void> {
  const problem = await goProblem();
  if (problem !== undefined) {
    throw new Error(`${problem}, expected Go and a module proxy: https://go.dev/dl`);
  }
  const newest = fold(await ofRelease(current));
  const before = fold(await ofRelease(previousMinor));
  const files = {
    [`${minorOf(current.version)}.json`]: newest,
    [`${minorOf(previousMinor.version)}.patch.json`]: patchOf({ ...newest }, { ...before }),
  };
  for (const [file, content] of Object.entries(files)) {
    const name = `components/settings/rules/arguments/${file}`;
    writeFileSync(join(checkout, name), written(content));
    console.log(name);
  }
}

if (require.main === module) {
  main().catch((error: Error) => {
    console.error(`zoned: ${error.message}`);
    process.exitCode = 1;
  });
}
