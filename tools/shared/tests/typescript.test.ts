import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { checkout } from "../checkout";
import { testFolder } from "../../../tests/support/test-folder";

let folder: string;
let kept: string;
beforeEach(() => {
  folder = testFolder();
  kept = join(folder, "node_modules/.cache/typescript");
  cpSync(join(checkout, "typescript.cjs"), join(folder, "typescript.cjs"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(join(checkout, "node_modules/typescript"), join(folder, "node_modules/typescript"));
});

function run(source: string) {
  const program = join(folder, "program.ts");
  writeFileSync(program, source);
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ["--require", join(folder, "typescript.cjs"), program],
    { encoding: "utf8" },
  );
  return { stdout, stderr };
}

it("compiles TypeScript once, and runs what it kept of it from then on", () => {
  const source = 'const word: string = "compiled"; console.log(word);';
  run(source);
  const [name = ""] = readdirSync(kept);
  const file = join(kept, name);
  writeFileSync(file, readFileSync(file, "utf8").replace('"compiled"', '"kept"'));

  expect(run(source).stdout).toBe("kept\n");
});

it("compiles anew what was changed, and keeps one file of it", () => {
  run("console.log(1 as number);");

  expect(run("console.log(2 as number);").stdout).toBe("2\n");
  expect(readdirSync(kept)).toHaveLength(1);
});

it("runs also where nothing can be kept", () => {
  writeFileSync(join(folder, "node_modules/.cache"), "a file where the folder should be");

  expect(run("console.log(3 as number);").stdout).toBe("3\n");
});

it("takes the place of a loader that is registered already", () => {
  writeFileSync(join(folder, "program.ts"), 'console.log("loaded" as string);');
  const main = [
    'require.extensions[".ts"] = () => { throw new Error("the other loader"); };',
    'require("./typescript.cjs").register();',
    'require("./program.ts");',
  ];
  writeFileSync(join(folder, "main.cjs"), main.join("\n"));

  const { stdout } = spawnSync(process.execPath, [join(folder, "main.cjs")], { encoding: "utf8" });

  expect(stdout).toBe("loaded\n");
});

it("names lines of the source when a program fails", () => {
  const { stderr } = run(
    'interface Gone {\n  a: string;\n}\n\nthrow new Error("on the fifth line");\n',
  );

  expect(stderr).toContain("program.ts:5");
});

it("names them in main.cjs too, where Pulumi has installed source-map-support", () => {
  const { stdout } = spawnSync(
    process.execPath,
    [
      ...["--require", "source-map-support/register", "--require", "./main.cjs"],
      ...["--print", "Error.prepareStackTrace"],
    ],
    { cwd: checkout, encoding: "utf8" },
  );

  expect(stdout).toBe("undefined\n");
});
