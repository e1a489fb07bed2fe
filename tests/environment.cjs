// What each test file runs in.
//
// It has a temporary folder of its own, also for the programs that it starts, which is gone when it has
// ended: nothing in a test removes what it wrote there.
//
// No claim is about time; a busy machine needs longer than the five seconds that are usual, and longer
// still where a whole cluster comes to life. What a test that hangs costs is this too.
"use strict";

const { mkdtempSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { TestEnvironment } = require("jest-environment-node");

const system = tmpdir();
const minutes = 60_000;

module.exports = class extends TestEnvironment {
  constructor(config, context) {
    // A third of what an API server takes to start is collecting its garbage.
    process.env["GOGC"] ??= "400";
    process.env["TMPDIR"] = mkdtempSync(join(system, "zoned-"));
    super(config, context);
    this.patience = (/\/tests\/e2e\//.test(context.testPath) ? 15 : 5) * minutes;
  }

  handleTestEvent({ name }, state) {
    if (name === "setup") state.testTimeout = this.patience;
  }

  async teardown() {
    await super.teardown();
    rmSync(tmpdir(), { recursive: true, force: true, maxRetries: 5 });
  }
};
