import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { issuerContainer } from "../../components/azure/resource-names";
import { keysPath } from "../../components/token-issuer";
import { checkout } from "../../tools/shared/checkout";

const tracked = execFileSync("git", ["ls-files"], { cwd: checkout, encoding: "utf8" }).split("\n");
const folders = new Set(
  tracked.filter((file) => file.includes("/")).map((file) => file.split("/")[0]),
);
const pages = tracked.filter((file) => file.endsWith(".md"));

const read = (page: string): string => readFileSync(join(checkout, page), "utf8");

/** The names by which GitHub links to a page's headings. */
const anchorsOf = (page: string): string[] =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );

function isDeadLink(page: string, link: string): boolean {
  if (/^[a-z]+:/.test(link)) return false;
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? page : join(dirname(page), path);
  if (!existsSync(join(checkout, target))) return true;
  return anchor !== undefined && !anchorsOf(target).includes(anchor);
}

/**
 * Whether a word in code font is a path that is not there. One of this repository begins with one of
 * its folders, or with one beside the page; a source file may be named by the end of its path.
 */
function isDeadPath(page: string, word: string): boolean {
  if (!/^[\w./-]+$/.test(word)) return false;
  const [folder, ...rest] = word.split("/");
  if (rest.length > 0 && folders.has(folder))
    return ![".", dirname(page)].some((from) => existsSync(join(checkout, from, word)));
  const isSource = /\.(ts|cjs|sh|yaml)$/.test(word);
  return isSource && !tracked.some((file) => `/${file}`.endsWith(`/${word}`));
}

describe.each(pages)("%s", (page) => {
  const text = read(page);
  const words = [...text.matchAll(/`([^`\n]+)`/g)].map(([, word = ""]) => word);

  it("links to pages, files and headings that exist", () => {
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
    expect(links.filter((link) => isDeadLink(page, link))).toEqual([]);
  });

  it("names files that exist", () => {
    expect(words.filter((word) => isDeadPath(page, word))).toEqual([]);
  });

  it("names npm commands that exist", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const commands = [
      ...text.matchAll(/\bnpm (?:run (?:--silent )?(\w[\w:-]*)|(start|stop|test)\b)/g),
    ];
    const names = commands.map(([, name, short]) => name ?? short ?? "");
    expect(names.filter((name) => !(name in scripts))).toEqual([]);
  });
});

/** All that the program may print, with texts joined as they are when it runs. */
const sources = tracked
  .filter((file) =>
    /^(components|cloud-init|tools\/pulumi|tools\/local-azure)\/.*\.(ts|cjs|sh)$/.test(file),
  )
  .map((file) =>
    read(file)
      .replaceAll(/["`]\s*\+\s*["`]/g, "")
      .replaceAll('\\"', '"'),
  )
  .join("\n");

const section = (page: string, heading: string): string =>
  read(page).split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";

describe.each([
  ["docs/troubleshooting.md", "Before anything is created"],
  ["docs/troubleshooting.md", "From a machine"],
  ["docs/real-machines.md", "Messages"],
])("%s, %s", (page, heading) => {
  const messages = section(page, heading)
    .split("\n")
    .flatMap((line) => /^\| ((`[^`]+`(, )?)+) \|/.exec(line)?.[1]?.split(", `") ?? []);

  it("quotes messages as the program prints them", () => {
    // What differs stands for itself: names of steps and reasons, too, are put in when it runs.
    const parts = messages.flatMap((message) => message.replaceAll("`", "").split(/…|"|: /));
    const known = parts.map((part) => part.trim()).filter((part) => part !== "");

    expect(known.length).toBeGreaterThan(4);
    expect(known.filter((part) => !sources.includes(part))).toEqual([]);
  });
});

it("takes the key of service accounts that others know out of the document that the program publishes", () => {
  const place = `--container-name ${issuerContainer} --name ${keysPath} `;
  expect(read("docs/day-2.md")).toContain(place);
});

it("asks kubectl for subresources by their option, as TYPE/NAME is an object of that name", () => {
  const commands = pages.flatMap((page) => read(page).match(/\bcan-i [^`\n]+/g) ?? []);

  expect(commands).not.toEqual([]);
  expect(commands.filter((command) => /\w\/\w/.test(command))).toEqual([]);
});

it("writes what is secret where git does not look, and for its owner alone", () => {
  const pattern = /^.*pulumi stack output (?=.*--show-secrets)[^`\n]*>\s*([\w./-]+).*$/gm;
  const found = pages.flatMap((page) => [...read(page).matchAll(pattern)]);
  const files = found.map(([, file = ""]) => file);
  const { stdout } = spawnSync("git", ["check-ignore", ...files], {
    cwd: checkout,
    encoding: "utf8",
  });

  expect(files).not.toEqual([]);
  expect(files.filter((file) => !stdout.split("\n").includes(file))).toEqual([]);
  expect(found.map(([line]) => line).filter((line) => !line.includes("(umask 077 && "))).toEqual(
    [],
  );
});

it.each([
  ["keeps npm's own lines out of documents", /\bnpm run [^`"\n]*--json\b/g, "npm run --silent "],
  ["copies the project without a stack", /\bpulumi new [^`\n]*/g, " --generate-only"],
])("%s", (_, pattern, part) => {
  const places = [...pages, "tools/cli/commands.cjs"];
  const commands = places.flatMap((place) => read(place).match(pattern) ?? []);

  expect(commands).not.toEqual([]);
  expect(commands.filter((command) => !command.includes(part))).toEqual([]);
});
