// Loaded into what the engine starts. The language host that rehearsals build is too old to be told of Pulumi.yaml's
// runtime options, and takes typescript for true, by which Pulumi would load ts-node.
"use strict";

process.env.PULUMI_NODEJS_TYPESCRIPT &&= "false";
