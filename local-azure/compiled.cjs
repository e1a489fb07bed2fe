// Loads TypeScript as it was compiled before: the compiler takes seconds of each command's start.
"use strict";

const { createHash, randomUUID } = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");

const folder = process.env.ZONED_COMPILED;
const { version } = require("typescript/package.json");

const options = {
  target: "ES2023",
  module: "NodeNext",
  esModuleInterop: true,
  inlineSourceMap: true,
  inlineSources: true,
};

const hash = (text) => createHash("sha256").update(text).digest("hex");

function compiled(file) {
  const source = fs.readFileSync(file, "utf8");
  const kept = folder && path.join(folder, `${hash(file).slice(0, 32)}.js`);
  const mark = `/*${hash(`${version}\n${JSON.stringify(options)}\n${source}`)}*/`;
  const before = read(kept);
  if (before.startsWith(mark)) return before;
  const { outputText } = require("typescript").transpileModule(source, {
    fileName: file,
    compilerOptions: options,
  });
  keep(kept, mark + outputText);
  return mark + outputText;
}

function read(file) {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** Whole or not at all; a home that cannot be written to only makes the next start as slow. */
function keep(file, text) {
  const draft = `${file}.${randomUUID()}`;
  try {
    if (!fs.existsSync(folder)) fs.mkdirSync(folder);
    fs.writeFileSync(draft, text);
    fs.renameSync(draft, file);
  } catch {
    if (fs.existsSync(draft)) fs.rmSync(draft);
  }
}

process.setSourceMapsEnabled(true);
require.extensions[".ts"] = (module, file) => module._compile(compiled(file), file);
