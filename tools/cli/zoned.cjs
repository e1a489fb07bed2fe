// What runs before anything is installed: plain JavaScript, no packages, any Node from 20 on.
"use strict";

const { spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const { answer } = require("./command-line.cjs");
const commands = require("./commands.cjs");

const root = path.join(__dirname, "../..");
const modules = path.join(root, "node_modules");
const installedLock = path.join(modules, ".package-lock.json");

const oldestNode = 20;
const programNode = 22; // @pulumi/pulumi needs it, and it comes among the packages.
const wait = "typically 30 s to 2 min";

/** The folder of built programs; undefined for a user without a home folder. */
function cacheFolder() {
  try {
    return path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), ".cache"), "zoned");
  } catch {
    return undefined;
  }
}

const cache = cacheFolder();

/** Makes a folder and those above it; Node's own recursive way never returns below /proc. */
function makeFolder(folder) {
  if (fs.existsSync(folder)) return;
  if (!fs.existsSync(path.dirname(folder))) makeFolder(path.dirname(folder));
  fs.mkdirSync(folder);
}

/** What is wrong with the folder of built programs; undefined when nothing is. */
function cacheProblem() {
  const remedy = "set XDG_CACHE_HOME to a folder that can be written to";
  if (cache === undefined) return `this user has no home folder, and HOME is not set: ${remedy}`;
  try {
    makeFolder(cache);
    if (fs.statSync(cache).isDirectory()) return undefined;
    return `${cache} is a file, and should be the folder of built programs: move it away, or ${remedy}`;
  } catch (error) {
    if (error.code === "EEXIST" && fs.existsSync(cache)) return undefined;
    return `the folder of built programs, ${cache}, cannot be made (${error.code}): ${remedy}`;
  }
}

const major = (version) => Number(/^v?(\d+)\./.exec(version)?.[1] ?? 0);

/** The PATH without this checkout's own programs, some of which may be about to be replaced. */
const outerPath = () =>
  (process.env.PATH ?? "")
    .split(path.delimiter)
    .filter((folder) => folder !== "" && path.resolve(folder) !== path.join(modules, ".bin"))
    .join(path.delimiter);

const has = (name) =>
  outerPath()
    .split(path.delimiter)
    .some((folder) => {
      try {
        fs.accessSync(path.join(folder, name), fs.constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });

/**
 * Whether an earlier run has filled the cache: every command needs Kubernetes, and which of the
 * other programs it needs is checked when they are installed.
 */
const isCacheFilled = () =>
  fs
    .readdirSync(cache)
    .some((name) => /^kubernetes-\d[^-]*$/.test(name) && !name.endsWith(".lock"));

async function reachesDownloads() {
  // Node knows no proxy before there are packages: what is missing behind one is said by the downloads.
  if (process.env.https_proxy ?? process.env.HTTPS_PROXY) return true;
  const answers = ["https://get.pulumi.com", "https://dl.k8s.io", "https://github.com"].map((url) =>
    fetch(url, { method: "HEAD", redirect: "manual", signal: AbortSignal.timeout(4000) }),
  );
  return (await Promise.allSettled(answers)).every(({ status }) => status === "fulfilled");
}

/** Everything that is missing at once, each with the way to get it. */
async function missing(command) {
  const problems = [];
  if (major(process.version) < oldestNode) {
    problems.push(
      `Node is ${process.version}, expected v${oldestNode} or later: https://nodejs.org; that of apt-get may be older`,
    );
  }
  if (!packagesMatch() && !has("npm")) {
    problems.push(
      "npm is missing: it comes with Node from https://nodejs.org, or apt-get install npm",
    );
  }
  const unusable = cacheProblem();
  if (!commands[command].rehearses) return problems;
  const host = `${os.platform()} ${os.arch()}`;
  if (host !== "linux x64") {
    problems.push(`this is ${host}, expected linux x64; on Windows, WSL (wsl --install)`);
  }
  if (!has("tar")) problems.push("tar is missing: apt-get install tar");
  if (unusable !== undefined) problems.push(unusable);
  else if (command !== "stop" && !isCacheFilled() && !has("go") && !(await reachesDownloads())) {
    problems.push(
      "the programs of a control plane can neither be downloaded (get.pulumi.com, dl.k8s.io and github.com do not all answer) " +
        "nor be built, since Go is missing: a network that reaches them, or Go with a module proxy (https://go.dev/dl, or apt-get install golang-go)",
    );
  }
  return problems;
}

/** Whether what is installed is what package-lock.json says; npm writes its own list last. */
function packagesMatch() {
  const read = (file) => JSON.parse(fs.readFileSync(file, "utf8")).packages;
  let installed;
  try {
    installed = read(installedLock);
  } catch {
    return false;
  }
  return Object.entries(read(path.join(root, "package-lock.json"))).every(([place, wanted]) => {
    if (place === "") return true;
    const found = installed[place];
    if (!found) return wanted.optional === true;
    return (
      found.version === wanted.version &&
      found.integrity === wanted.integrity &&
      fs.existsSync(path.join(root, place, "package.json"))
    );
  });
}

async function installPackages() {
  // Gone first, so that an install that is interrupted is seen as one next time.
  fs.rmSync(installedLock, { force: true });
  const since = Date.now();
  const seconds = () => Math.round((Date.now() - since) / 1000);
  console.error(`installing packages with npm ci (${wait}) …`);
  const ticker = setInterval(
    () => console.error(`  still installing packages (${seconds()} s, ${wait})`),
    15_000,
  );
  // No package's own script is needed here; some would download plugins that are not used.
  // NODE_ENV=production and npm's own settings would leave some out, which are missed each time.
  const all = ["--include=dev", "--include=optional"];
  const npm = spawn("npm", ["ci", ...all, "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: root,
    env: { ...process.env, PATH: outerPath() },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [npm.stdout, npm.stderr]) stream.on("data", (text) => (output += text));
  let interrupted = false;
  const forward = (signal) => {
    interrupted = true;
    npm.kill(signal);
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, forward);
  const code = await new Promise((resolve) => {
    npm.on("error", (error) => resolve(error.message));
    npm.on("close", resolve);
  });
  clearInterval(ticker);
  for (const signal of ["SIGINT", "SIGTERM"]) process.off(signal, forward);
  if (interrupted) {
    console.error("interrupted; the next run installs the packages anew");
    return 130;
  }
  if (code !== 0) {
    console.error(output.trimEnd());
    console.error(
      `\nzoned: npm ci ended with ${code}; it needs the npm registry (npm config get registry) and a package-lock.json that fits package.json`,
    );
    return 1;
  }
  console.error(`packages installed (${seconds()} s)`);
  return 0;
}

/**
 * A Node that the program runs on: the one among the packages, so that all use the same, else this
 * one.
 */
function findNode() {
  const packages = fs.readdirSync(modules).filter((name) => name.startsWith("node-"));
  const bundled = packages
    .map((name) => path.join(modules, name, "bin", "node"))
    .filter((file) => fs.existsSync(file));
  return [...bundled, process.execPath].find((file) => {
    const { status, stdout } = spawnSync(file, ["--version"], { encoding: "utf8" });
    return status === 0 && major(stdout.trim()) >= programNode;
  });
}

/** Runs the commands proper, passing on signals and its verdict. */
function handOver(node, args) {
  const { file } = commands[args[0]];
  const words = ["--require", "./typescript.cjs", file, ...args];
  const child = spawn(node, words, { cwd: root, stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => child.kill(signal));
  }
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(code ?? 128 + os.constants.signals[signal]));
  });
}

async function main(args) {
  const printed = answer(args);
  if (printed !== null) {
    // The console drops what nobody reads any more.
    (printed.exitCode === 0 ? console.log : console.error)(printed.text.trimEnd());
    return printed.exitCode;
  }
  const problems = await missing(args[0]);
  if (problems.length > 0) {
    console.error("zoned: this machine lacks something:");
    for (const problem of problems) console.error(`  - ${problem}`);
    return 1;
  }
  const code = packagesMatch() ? 0 : await installPackages();
  if (code !== 0) return code;
  const node = findNode();
  if (!node) {
    console.error(
      `zoned: no Node ${programNode} for ${os.platform()} ${os.arch()} among the packages, and this one is ${process.version}: ` +
        `install Node ${programNode} or later from https://nodejs.org`,
    );
    return 1;
  }
  return handOver(node, args);
}

main(process.argv.slice(2)).then(
  (code) => (process.exitCode = code),
  (error) => {
    console.error(`zoned: ${error.message}`);
    process.exitCode = 1;
  },
);
