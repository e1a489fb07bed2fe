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
  async update(id, _olds, news) {
    try {
      await awaited(news);
    } catch (error) {
      // By these the engine keeps that nothing is awaited yet. It would keep what was awaited last, and a change that
      // is taken back would be for the same.
      const properties = { ...news, awaitedFor: "" };
      throw Object.assign(error, { id, reasons: [error.message], properties });
    }
    return { outs: news };
  },
};
