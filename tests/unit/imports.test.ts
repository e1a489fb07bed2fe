import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { checkout } from "../../tools/shared/checkout";

/** Parts of the program, each of which may import from those above it in this list alone. */
const program = [
  "components/versions.ts",
  "components/digest.ts",
  "components/key-algorithm.ts",
  "components/azure/clouds.ts",
  "components/settings",
  "components/azure",
  "components/api-server.ts",
  "components/token-issuer.ts",
  "components/kubeadm",
  "components/cluster",
  "components/certificates.ts",
  "components/roles.ts",
  "components/cluster-group.ts",
  "components/machine",
  "components/identity.ts",
  "components/role-assignments.ts",
  "components/workload-identities.ts",
  "components/add-ons",
  "components/kubeconfig.ts",
  "components/plan",
  "components/network.ts",
  "components/image",
  "components/api-balancer.ts",
  "components/bootstrap-payload.ts",
  "components/control-plane.ts",
  "components/workers.ts",
  "components/cluster-provider.ts",
  "components/outputs.ts",
  "index.ts",
  "image.ts",
];

/** Which tools each tool imports from; all may import from the program, which imports from none. */
const tools: Readonly<Record<string, readonly string[]>> = {
  shared: [],
  programs: ["shared"],
  pulumi: ["shared"],
  mirror: ["programs", "shared"],
  trace: ["shared"],
  recover: ["programs", "pulumi", "shared"],
  "local-azure": ["mirror", "programs", "pulumi", "recover", "shared"],
  doctor: ["shared"],
  lab: ["local-azure", "mirror", "programs", "pulumi", "shared", "trace"],
  cli: [
    "doctor",
    "lab",
    "local-azure",
    "mirror",
    "programs",
    "pulumi",
    "recover",
    "shared",
    "trace",
  ],
};

const files = execFileSync("git", ["ls-files", "*.ts"], { cwd: checkout, encoding: "utf8" })
  .split("\n")
  .filter((file) => file !== "" && !/(^|\/)tests\//.test(file));

const known = new Set(files);

/** The files of this repository that a file imports. */
const importsOf = (file: string): string[] => {
  const text = readFileSync(join(checkout, file), "utf8");
  return [...text.matchAll(/(?:from|import\(|require\()\s*"(\.[^"]*)"/g)].map(([, path = ""]) => {
    const target = join(dirname(file), path);
    return known.has(`${target}.ts`) ? `${target}.ts` : target;
  });
};

const isIn = (part: string, file: string): boolean => file === part || file.startsWith(`${part}/`);

const foreignImports = (part: string, isAllowed: (target: string) => boolean): string[] =>
  files
    .filter((file) => isIn(part, file))
    .flatMap((file) =>
      importsOf(file)
        .filter((target) => !isIn(part, target) && !isAllowed(target))
        .map((target) => `${file} imports ${target}`),
    );

it.each(program)("%s imports only from parts above it", (part) => {
  const above = program.slice(0, program.indexOf(part));

  expect(files.filter((file) => isIn(part, file))).not.toEqual([]);
  expect(foreignImports(part, (target) => above.some((one) => isIn(one, target)))).toEqual([]);
});

it.each(Object.entries(tools))("tools/%s imports of other tools only %j", (name, others) => {
  const part = `tools/${name}`;
  const isAllowed = (target: string) =>
    isIn("components", target) || others.some((other) => isIn(`tools/${other}`, target));

  expect(files.filter((file) => isIn(part, file))).not.toEqual([]);
  expect(foreignImports(part, isAllowed)).toEqual([]);
});

it("knows every part that has sources", () => {
  const parts = [...program, ...Object.keys(tools).map((name) => `tools/${name}`)];

  expect(files.filter((file) => !parts.some((part) => isIn(part, file)))).toEqual([]);
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
