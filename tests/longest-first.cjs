// The longest first, so that no long file is left when the others have ended. Jest knows how long a
// file takes only after it has run it here; until then it goes by size, and the clusters of e2e and the
// scripts on stand-ins take the longest whatever their size.
"use strict";

const { default: Sequencer } = require("@jest/test-sequencer");

const long = /\/tests\/(e2e|unit\/cloud-init)\//;

module.exports = class extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    return [true, false].flatMap((isLong) =>
      sorted.filter(({ path }) => long.test(path) === isLong),
    );
  }
};
