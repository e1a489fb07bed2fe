// What the engine runs for the resources of roll-out.ts, in a process of its own. Pulumi's state names this
// file: it keeps its place.
"use strict";

const forOperators = require("../for-operators.cjs");

const awaited = ({ kubeconfig, targets }) =>
  forOperators(() => {
    require("../../typescript.cjs").register();
    return require("../cluster/roll-out").awaitRollOuts(kubeconfig, targets);
  });

module.exports = {
  async create(inputs) {
    await awaited(inputs);
    return { id: "awaited", outs: inputs };
  },
  // Another kubeconfig is no reason to wait.
  async diff(_id, olds, news) {
    return { changes: olds.awaitedFor !== news.awaitedFor };
  },
  async update(_id, _olds, news) {
    await awaited(news);
    return { outs: news };
  },
};
