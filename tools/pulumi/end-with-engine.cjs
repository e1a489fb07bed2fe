// Loaded into what the engine starts: a program whose engine was killed would stay, and take ever
// more memory.
"use strict";

const { readFileSync } = require("node:fs");
const { isMainThread, Worker } = require("node:worker_threads");

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

// From a thread of its own: what its engine left behind may be too busy to look.
if (isMainThread) new Worker(__filename).unref();
else {
  const parent = process.ppid;
  const leader = engine();
  setInterval(() => {
    const isLeft = process.ppid !== parent || !isThere(leader);
    if (isLeft) process.kill(process.pid, "SIGKILL");
  }, lookEvery);
}
