// What the engine runs for the resources of membership.ts, in a process of its own, also when their machine
// has left the program. Pulumi's state names this file: it keeps its place and its two exports.
"use strict";

const forOperators = require("../for-operators.cjs");

/** The stack's settings of this moment; what a resource was made with may be years old. */
let settings = () => undefined;

function limits({ initialization, role }) {
  const { parseCompactTime } = program("../settings/times");
  const { clusterIdOf } = program("../plan/machine-changes");
  const givenUp = settings("reinitialize") ?? "";
  // Left behind on a living cluster, it lets nothing go that can be asked.
  const isRestored = role === "control-plane" && Boolean(settings("restoreFrom"));
  return {
    drainMinutes: Number(settings("drainMinutes") ?? 15),
    // Workers are made for a cluster, and stay when it is restored.
    dataLossAccepted: initialization === (role === "worker" ? clusterIdOf(givenUp) : givenUp),
    savesEtcd: Object.keys(JSON.parse(settings("etcdBackups") || "{}")).length > 0,
    skipIfUnreachable:
      isRestored || parseCompactTime(settings("skipHealthCheckUntil") ?? "") > Date.now(),
  };
}

/** A kubeconfig may be years old too: the proxy of then may be gone. */
function reachable({ kubeconfig, ...member }) {
  const { throughProxy } = program("../kubeconfig");
  return { ...member, kubeconfig: throughProxy(kubeconfig, settings("apiProxy")) };
}

/** Loaded only where something changes. */
function program(path) {
  require("../../typescript.cjs").register();
  return require(path);
}

const common = {
  async configure({ config }) {
    settings = (name) => config.get(name);
  },
  async create(inputs) {
    return { id: inputs.machine, outs: inputs };
  },
};

const differs = (olds, news) => Object.keys(news).some((key) => olds[key] !== news[key]);

const membership = {
  ...common,
  async diff(_id, olds, news) {
    return {
      changes: differs(olds, news),
      replaces: olds.vmId === news.vmId ? [] : ["vmId"],
      deleteBeforeReplace: true,
    };
  },
  update: (_id, olds, news) =>
    forOperators(async () => {
      if (olds.drained !== news.drained) {
        await program("../cluster/leave").admitPods(news, limits(news));
      }
      return { outs: news };
    }),
  delete: (_id, props) =>
    forOperators(() => program("../cluster/leave").leave(reachable(props), limits(props))),
};

const drainBeforeResize = {
  ...common,
  async create(inputs) {
    return { id: inputs.machine, outs: { ...inputs, drained: "" } };
  },
  async diff(_id, olds, { resizes, isEmpty: _, ...news }) {
    return { changes: differs(olds, news) || resizes === true };
  },
  update: (_id, olds, news) =>
    forOperators(async () => {
      if (!news.resizes) return { outs: { ...news, drained: olds.drained } };
      if (!news.isEmpty) await program("../cluster/leave").drainForResize(news, limits(news));
      return { outs: { ...news, drained: new Date().toISOString() } };
    }),
};

module.exports = { membership, drainBeforeResize };
