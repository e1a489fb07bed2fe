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
  update: async (_id, _olds, news) => ({ outs: news }),
  delete: (_id, props) =>
    forOperators(() => program("../cluster/leave").leave(reachable(props), limits(props))),
};

/** What comes of a drain: when the machine was last drained for another size. */
async function drained(inputs, before) {
  const { resizes, isEmpty, upgrade } = inputs;
  if (resizes && !isEmpty) {
    await program("../cluster/leave").drainForResize(inputs, limits(inputs));
  } else if (upgrade) {
    await program("../cluster/leave").drainForUpgrade(inputs, upgrade, limits(inputs));
  }
  return { ...inputs, drained: resizes ? new Date().toISOString() : before };
}

const drain = {
  ...common,
  create: (inputs) =>
    forOperators(async () => ({ id: inputs.machine, outs: await drained(inputs, "") })),
  async diff(_id, olds, { resizes, isEmpty: _, upgrade, ...news }) {
    return { changes: differs(olds, news) || resizes === true || upgrade !== undefined };
  },
  update: (_id, olds, news) =>
    forOperators(async () => ({ outs: await drained(news, olds.drained) })),
};

module.exports = { membership, drain };
