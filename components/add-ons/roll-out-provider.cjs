// What the engine runs for the resources of roll-out.ts, in a process of its own. Pulumi's state names this
// file: it keeps its place.
"use strict";

/** An error without a stack trace: it is the operator's to read. */
async function awaited({ kubeconfig, targets }) {
  require("../../typescript.cjs").register();
  try {
    await require("../cluster/roll-out").awaitRollOuts(kubeconfig, targets);
  } catch ({ message }) {
    throw Object.assign(new Error(message), { stack: "", name: "" });
  }
}

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
