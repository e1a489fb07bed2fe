// Loads this repository's TypeScript: for Node by `--require`, for jest as its transformer. What was
// compiled once is kept, since the compiler takes seconds of each start.
"use strict";

const { createHash, randomUUID } = require("node:crypto");
const fs = require("node:fs");
const nodeModule = require("node:module");
const path = require("node:path");
const { version } = require("typescript/package.json");

const cache = path.join(__dirname, "node_modules", ".cache");
const folder = path.join(cache, "typescript");

const options = {
  target: "ES2023",
  module: "NodeNext",
  esModuleInterop: true,
  inlineSourceMap: true,
  inlineSources: true,
};

/** Types are checked by `tsc`; here they are only taken off. */
const compile = (source, file, more) =>
  require("typescript").transpileModule(source, {
    fileName: file,
    compilerOptions: { ...options, ...more },
  }).outputText;

const hash = (text) => createHash("sha256").update(text).digest("hex");

function load(file) {
  const source = fs.readFileSync(file, "utf8");
  const kept = path.join(folder, `${hash(file).slice(0, 32)}.js`);
  const mark = `/*${hash(`${version}\n${JSON.stringify(options)}\n${source}`)}*/`;
  const before = read(kept);
  if (before.startsWith(mark)) return before;
  const compiled = mark + compile(source, file);
  keep(kept, compiled);
  return compiled;
}

function read(file) {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** Whole or not at all; where nothing can be written, the next start only is as slow. */
function keep(file, text) {
  const draft = `${file}.${randomUUID()}`;
  try {
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(draft, text);
    fs.renameSync(draft, file);
  } catch {
    if (fs.existsSync(draft)) fs.rmSync(draft);
  }
}

function register() {
  // The packages' own maps would be read at each start too.
  if (nodeModule.setSourceMapsSupport)
    nodeModule.setSourceMapsSupport(true, { nodeModules: false });
  else process.setSourceMapsEnabled(true);
  // Node's own cache, of what V8 compiles: the packages are half of a start.
  nodeModule.enableCompileCache?.(path.join(cache, "node"));
  require.extensions[".ts"] = (module, file) => module._compile(load(file), file);
}

const isPreloaded = require.main === undefined;
if (isPreloaded) register();

module.exports = {
  register,

  /** For jest, which keeps what was compiled itself, and has no native `import()`. */
  process: (source, file) => ({ code: compile(source, file, { module: "CommonJS" }) }),
};
