// A test file, and the programs that it starts, have a temporary folder of their own, which is gone
// when the file has ended: nothing in a test removes what it wrote there.
"use strict";

const { mkdtempSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { TestEnvironment } = require("jest-environment-node");

const system = tmpdir();

module.exports = class extends TestEnvironment {
  constructor(...args) {
    process.env["TMPDIR"] = mkdtempSync(join(system, "zoned-"));
    super(...args);
  }

  async teardown() {
    await super.teardown();
    rmSync(tmpdir(), { recursive: true, force: true, maxRetries: 5 });
  }
};
