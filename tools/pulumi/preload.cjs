// Loaded into all that the engine starts on Node.js.
"use strict";

const { readFileSync } = require("node:fs");
const { isMainThread, Worker } = require("node:worker_threads");

// The language host that rehearsals build is too old to be told of Pulumi.yaml's runtime options, and takes typescript
// for true, by which Pulumi would load ts-node.
process.env.PULUMI_NODEJS_TYPESCRIPT &&= "false";

const lookEvery = 1000;

/**
 * The engine leads the session of all that it starts; a leader's number is given to no other
 * process before the last of them has ended.
 */
function engine() {
  const stat = readFileSync("/proc/self/stat", "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[3]);
}

function isThere(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

// A program whose engine was killed would stay, and take ever more memory. From a thread of its own, since it may be too
// busy to look.
if (isMainThread) new Worker(__filename).unref();
else {
  const parent = process.ppid;
  const leader = engine();
  setInterval(() => {
    const isLeft = process.ppid !== parent || !isThere(leader);
    if (isLeft) process.kill(process.pid, "SIGKILL");
  }, lookEvery);
}
