// What Pulumi runs: its ts-node compiles everything at each start, and this keeps what was compiled.
"use strict";

require("./typescript.cjs").register();
// ts-node's knows nothing of these files; Node's own names lines of the source.
delete Error.prepareStackTrace;
// `npm run image` has another program of this project make another stack.
module.exports = require(process.env.ZONED_PROGRAM === "image" ? "./image.ts" : "./index.ts");
