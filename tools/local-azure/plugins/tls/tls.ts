import { readFileSync } from "node:fs";

import { changesBetween } from "../protocol/changes";
import {
  CheckRequest,
  CheckResult,
  DiffResult,
  Plugin,
  ResourceProvider,
  Served,
} from "../protocol/protocol";
import { type Around, serve } from "../protocol/serve";
import { hasUnknown, Properties, secret, unknown, Value } from "../protocol/values";
import { Resource, resources } from "./resources";

const hour = 3_600_000;

/** Stands in for the `tls` plugin where the official one cannot be installed. */
export const serveTls = (port: number, around?: Around): Promise<Served> =>
  serve(plugin, port, around);

const { version } = JSON.parse(
  readFileSync(require.resolve("@pulumi/tls/package.json"), "utf8"),
) as { readonly version: string };

const plugin: Plugin = { version, connect: () => provider };

function resourceOf(type: string): Resource {
  const resource = resources[type.split(":").at(-1) ?? ""];
  if (!resource) {
    throw new Error(
      `${type} is not supported by this stand-in for the tls plugin; it supports ` +
        Object.keys(resources).join(", "),
    );
  }
  return resource;
}

function check({ type, news }: CheckRequest): CheckResult {
  const { inputs, secrets } = resourceOf(type);
  const problemOf = (property: string, value: Value): string => {
    const rule = inputs[property];
    if (!rule) {
      return (
        `${property} is not supported by this stand-in for the tls plugin; it supports ` +
        Object.keys(inputs).join(", ")
      );
    }
    return secrets.includes(property)
      ? `${property} is not what is expected: ${rule.is}`
      : `${property} is ${JSON.stringify(value)}, expected ${rule.is}`;
  };
  const missing = Object.entries(inputs)
    .filter(([property, { required }]) => required && news[property] === undefined)
    .map(([property, { is }]) => ({ property, reason: `${property} is required: ${is}` }));
  const wrong = Object.entries(news)
    .filter(([property, value]) => !hasUnknown(value) && !inputs[property]?.accepts(value))
    .map(([property, value]) => ({ property, reason: problemOf(property, value) }));
  return { inputs: news, failures: [...missing, ...wrong] };
}

/** From this time on a certificate is planned anew, without any change of its inputs. */
function isReadyForRenewal(
  { validityEndTime }: Properties,
  { earlyRenewalHours }: Properties,
): boolean {
  const renewal = Date.parse(String(validityEndTime)) - Number(earlyRenewalHours ?? 0) * hour;
  return Date.now() >= renewal;
}

function diff(
  resource: Resource,
  olds: Properties,
  news: Properties,
  state: Properties,
): DiffResult {
  const before = { ...resource.defaults, ...olds };
  const after = { ...resource.defaults, ...news };
  const changes = Object.keys({ ...before, ...after }).flatMap((path) => {
    const [change] = changesBetween(before[path], after[path], { replaces: () => false });
    const kind =
      before[path] === undefined ? "add" : after[path] === undefined ? "delete" : "update";
    return change ? [{ path, kind, replaces: path !== "earlyRenewalHours" } as const] : [];
  });
  const renewal = isReadyForRenewal(state, news)
    ? [{ path: "readyForRenewal", kind: "update", replaces: true } as const]
    : [];
  return { changes: [...changes, ...renewal] };
}

/** Keys are marked even where the program took them from a place that is not. */
function stateOf(resource: Resource, inputs: Properties, outputs: Properties): Properties {
  const state = { ...resource.defaults, ...inputs, ...outputs };
  return Object.fromEntries(
    Object.entries(state).map(([key, value]) => [
      key,
      resource.secrets.includes(key) ? secret(value) : value,
    ]),
  );
}

const provider: ResourceProvider = {
  check,

  diff: ({ type, olds, news, state }) => diff(resourceOf(type), olds, news, state),

  create: async ({ type, inputs, preview }) => {
    const resource = resourceOf(type);
    if (preview) {
      const outputs = Object.fromEntries(resource.computed.map((output) => [output, unknown]));
      return { id: "", state: stateOf(resource, inputs, outputs) };
    }
    const { id, outputs } = await resource.create({ ...resource.defaults, ...inputs });
    return { id, state: stateOf(resource, inputs, outputs) };
  },

  // Keys and certificates are in the state alone, so there is nothing elsewhere to compare with.
  read: async ({ id, state, inputs }) => ({
    id,
    state: isReadyForRenewal(state, state) ? { ...state, readyForRenewal: true } : state,
    inputs,
  }),

  update: async ({ type, state, news }) => {
    const resource = resourceOf(type);
    const outputs = Object.fromEntries(
      [...resource.computed, "readyForRenewal"].map((output) => [output, state[output]]),
    );
    return stateOf(resource, news, outputs);
  },

  delete: async () => undefined,
};
