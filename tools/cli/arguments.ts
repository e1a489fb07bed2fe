import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

import { format } from "prettier";

import { minorOf } from "../../components/versions";
import { environment, goProblem } from "../programs/builds";
import { current, previousMinor, type Release } from "../programs/releases";
import { checkout } from "../shared/checkout";

const modules = join(checkout, "tools/programs/modules");

/** What one program takes on its command line, as `print.go` and `etcd.go` describe it. */
type Arguments = Readonly<Record<string, unknown>>;

const kubernetes = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"];

/** Runs Go files that are linked with a program's own packages. */
async function ask(module: string, files: readonly string[]): Promise<Arguments> {
  const words = ["run", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", ...files];
  const cwd = join(modules, module);
  const options = { cwd, env: environment(), maxBuffer: 64 << 20 };
  const { stdout } = await promisify(execFile)("go", words, options);
  return JSON.parse(stdout) as Arguments;
}

/** Flags, feature gates and known values of every program of a release that takes arguments. */
async function argumentsOf({ sources }: Release): Promise<Record<string, Arguments>> {
  const found: Record<string, Arguments> = {};
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

/** Writes what each program takes on its command line, by minor, for the settings' checks. */
async function main(): Promise<void> {
  const problem = await goProblem();
  if (problem !== undefined) {
    throw new Error(`${problem}, expected Go and a module proxy: https://go.dev/dl`);
  }
  for (const release of [current, previousMinor]) {
    const text = JSON.stringify(await argumentsOf(release));
    const name = `components/settings/rules/arguments/${minorOf(release.version)}.json`;
    writeFileSync(join(checkout, name), await format(text, { parser: "json", printWidth: 100 }));
    console.log(name);
  }
}

if (require.main === module) {
  main().catch((error: Error) => {
    console.error(`zoned: ${error.message}`);
    process.exitCode = 1;
  });
}
