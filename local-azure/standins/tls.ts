import {
  CheckRequest,
  CheckResult,
  DiffResult,
  Plugin,
  ResourceProvider,
  Served,
} from "./protocol";
import { changesBetween } from "./protocol/changes";
import { type Around, serve } from "./protocol/serve";
import { hasUnknown, Properties, secret, unknown } from "./protocol/values";
import { flawOf, Kind, kinds } from "./tls/kinds";

const hour = 3_600_000;

/** Plays the `tls` plugin where the official one cannot be installed. */
export const serveTls = (port: number, around?: Around): Promise<Served> =>
  serve(plugin, port, around);

const { version } = require("@pulumi/tls/package.json") as { version: string };

const plugin: Plugin = { version, connect: () => provider };

function kindOf(type: string): Kind {
  const kind = kinds[type.split(":").at(-1) ?? ""];
  if (!kind) {
    throw new Error(
      `${type} cannot be played here; the tls resources that can be are ` +
        Object.keys(kinds).join(", "),
    );
  }
  return kind;
}

function check({ type, news }: CheckRequest): CheckResult {
  const { required } = kindOf(type);
  const missing = required
    .filter((property) => news[property] === undefined)
    .map((property) => ({ property, reason: `${property} must be given` }));
  const wrong = Object.entries(news).flatMap(([property, value]) => {
    const flaw = hasUnknown(value) ? undefined : flawOf(property, value);
    return flaw ? [{ property, reason: `${property} ${flaw}` }] : [];
  });
  return { inputs: news, failures: [...missing, ...wrong] };
}

/** A certificate whose time has come is planned anew, without any change of its inputs. */
function isDue(state: Properties, news: Properties): boolean {
  const { validityEndTime } = state;
  if (typeof validityEndTime !== "string") {
    return false;
  }
  return Date.now() > Date.parse(validityEndTime) - Number(news.earlyRenewalHours ?? 0) * hour;
}

function diff(kind: Kind, olds: Properties, news: Properties, state: Properties): DiffResult {
  const before = { ...kind.defaults, ...olds };
  const after = { ...kind.defaults, ...news };
  const changes = changesBetween(before, after, (path) => !kind.updatable.includes(path));
  const due = isDue(state, news)
    ? [{ path: "readyForRenewal", kind: "update" as const, replaces: true }]
    : [];
  return { changes: [...changes, ...due] };
}

/** Keys are marked even where the program took them from a place that is not. */
function stateOf(kind: Kind, inputs: Properties, outputs: Properties): Properties {
  const { privateKeyPemWo: _key, caPrivateKeyPemWo: _caKey, ...kept } = inputs;
  const state = { ...kind.defaults, ...kept, ...outputs };
  return Object.fromEntries(
    Object.entries(state).map(([key, value]) => [
      key,
      kind.secrets.includes(key) ? secret(value) : value,
    ]),
  );
}

const provider: ResourceProvider = {
  check,

  diff: ({ type, olds, news, state }) => diff(kindOf(type), olds, news, state),

  create: async ({ type, inputs, preview }) => {
    const kind = kindOf(type);
    if (preview) {
      const outputs = Object.fromEntries(kind.made.map((output) => [output, unknown]));
      return { id: "", state: stateOf(kind, inputs, outputs) };
    }
    const { id, outputs } = await kind.make({ ...kind.defaults, ...inputs });
    return { id, state: stateOf(kind, inputs, outputs) };
  },

  // Keys and certificates live in the state alone, so there is nothing elsewhere to compare with.
  read: async ({ id, state, inputs }) => {
    const due = "validityEndTime" in state && isDue(state, inputs);
    return { id, state: due ? { ...state, readyForRenewal: true } : state, inputs };
  },

  update: async ({ type, state, news }) => {
    const kind = kindOf(type);
    const outputs = Object.fromEntries(
      [...kind.made, "readyForRenewal"].map((output) => [output, state[output]]),
    );
    return stateOf(kind, news, outputs);
  },

  delete: async () => undefined,
};
