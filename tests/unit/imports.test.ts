import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { checkout } from "../../shared/checkout";

/** Which top-level folders the files of each may import from, besides their own. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  "index.ts": ["components"],
  components: [],
  shared: [],
  programs: ["components", "shared"],
  stack: ["programs", "shared"],
  mirror: ["components", "programs", "shared"],
  trace: ["programs", "shared"],
  "local-azure": ["components", "mirror", "programs", "shared", "stack"],
  doctor: ["components", "shared"],
  bench: ["local-azure", "programs", "shared"],
  cli: [
    "bench",
    "doctor",
    "local-azure",
    "mirror",
    "programs",
    "shared",
    "stack",
    "tests",
    "trace",
  ],
};

const files = execFileSync("git", ["ls-files", "*.ts"], { cwd: checkout, encoding: "utf8" })
  .split("\n")
  .filter((file) => file !== "" && !file.startsWith("tests/") && !file.endsWith(".config.ts"));

const known = new Set(files);

/** The files of this repository that a file imports. */
const importsOf = (file: string): string[] => {
  const text = readFileSync(join(checkout, file), "utf8");
  return [...text.matchAll(/(?:from|import\(|require\()\s*"(\.[^"]*)"/g)].map(([, path = ""]) => {
    const target = join(dirname(file), path);
    return known.has(`${target}.ts`) ? `${target}.ts` : target;
  });
};

const topOf = (file: string): string => file.split("/")[0] ?? "";

it.each(Object.entries(allowed))("%s imports only from folders below it: %j", (folder, others) => {
  const own = files.filter((file) => topOf(file) === folder);
  const wrong = own.flatMap((file) =>
    importsOf(file)
      .filter((target) => topOf(target) !== folder && !others.includes(topOf(target)))
      .map((target) => `${file} imports ${target}`),
  );

  expect(own).not.toEqual([]);
  expect(wrong).toEqual([]);
});

it("knows every folder that has sources", () => {
  const folders = new Set(files.map(topOf));

  expect([...folders].sort()).toEqual(Object.keys(allowed).sort());
});

it("has no files that import each other in a circle", () => {
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, path: readonly string[]): void => {
    const before = path.indexOf(file);
    if (before >= 0) circles.push([...path.slice(before), file].join(" -> "));
    if (before >= 0 || done.has(file)) return;
    for (const target of importsOf(file)) if (known.has(target)) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);

  expect(circles).toEqual([]);
});
