// What Pulumi runs.
"use strict";

require("./typescript.cjs").register();
// Pulumi installs source-map-support, which has no maps of these files and is slow; Node's own names lines of the source.
delete Error.prepareStackTrace;
// `npm run image` has another program of this project make another stack.
module.exports = require(process.env.ZONED_PROGRAM === "image" ? "./image.ts" : "./index.ts");
