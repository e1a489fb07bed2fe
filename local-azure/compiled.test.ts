import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

let folder: string;
let kept: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zoned-compiled-"));
  kept = join(folder, "kept");
});
afterEach(() => rmSync(folder, { recursive: true }));

function run(source: string) {
  const program = join(folder, "program.ts");
  writeFileSync(program, source);
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ["-r", join(__dirname, "compiled.cjs"), program],
    {
      encoding: "utf8",
      env: { ...process.env, ZONED_COMPILED: kept },
    },
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
  mkdirSync(folder, { recursive: true });
  writeFileSync(kept, "a file where the folder should be");

  expect(run("console.log(3 as number);").stdout).toBe("3\n");
});

it("runs also where the system takes no folders", () => {
  kept = "/proc/x/y/compiled";

  expect(run("console.log(4 as number);").stdout).toBe("4\n");
});

it("names lines of the source when a program fails", () => {
  const { stderr } = run(
    'interface Gone {\n  a: string;\n}\n\nthrow new Error("on the fifth line");\n',
  );

  expect(stderr).toContain("program.ts:5");
});
