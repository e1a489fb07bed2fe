import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

import { environment } from "./builds";
import type { Release } from "./releases";

/** What one program takes on its command line, as `print.go` and `etcd.go` describe it. */
type Arguments = Readonly<Record<string, unknown>>;

const kubernetes = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"];

const modules = join(__dirname, "modules");

/** Runs Go files that are linked with a program's own packages. */
async function ask(module: string, files: readonly string[]): Promise<Arguments> {
  const words = ["run", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", ...files];
  const cwd = join(modules, module);
  const options = { cwd, env: environment(), maxBuffer: 64 << 20 };
  const { stdout } = await promisify(execFile)("go", words, options);
  return JSON.parse(stdout) as Arguments;
}

/** Flags, feature gates and known values of every program of a release that takes arguments. */
export async function argumentsOf({ sources }: Release): Promise<Record<string, Arguments>> {
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
