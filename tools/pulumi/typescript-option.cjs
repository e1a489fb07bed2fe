// Loaded into what the engine starts. The language host that rehearsals build is older than the way in which an engine
// tells of Pulumi.yaml's options: it would load ts-node, which is not installed.
"use strict";

process.env.PULUMI_NODEJS_TYPESCRIPT &&= "false";
