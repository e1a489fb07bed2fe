import { createRequire } from "node:module";
import type * as Grpc from "@grpc/grpc-js";
import { ErrorResourceInitFailed } from "@pulumi/pulumi/proto/provider_pb";
import { Status } from "@pulumi/pulumi/proto/status_pb";

// npm may nest the copies that the SDK uses, and messages of one copy cannot hold those of another.
const ofPulumi = createRequire(require.resolve("@pulumi/pulumi"));
const { Struct } = ofPulumi(
  "google-protobuf/google/protobuf/struct_pb.js",
) as typeof import("google-protobuf/google/protobuf/struct_pb");
const { Any } = ofPulumi(
  "google-protobuf/google/protobuf/any_pb.js",
) as typeof import("google-protobuf/google/protobuf/any_pb");
const { Metadata, status } = ofPulumi("@grpc/grpc-js") as typeof Grpc;

/** A property as the engine sends it, without the wrappers of secrets and outputs. */
export type Value = undefined | null | boolean | number | string | Value[] | Properties;

export interface Properties {
  [key: string]: Value;
}

type Message = InstanceType<typeof Struct>;
type Plain = Parameters<typeof Struct.fromJavaScript>[0];

const signature = "4dabf18193072939515e22adb298388d";
const secretSignature = "1b47061264138c4ac30d75fd1eb44270";
const outputSignature = "d0e6a833031e9bbcd3f4e8bde6ca49a4";

/** What the engine sends in a preview for a value that is not known yet, for each type of value. */
const unknowns: ReadonlySet<unknown> = new Set([
  "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
  "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
  "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
  "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
  "030794c1-ac77-496b-92df-f27374a8bd58",
  "e48ece36-62e2-4504-bad9-02848725956a",
  "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
]);

/** The value to answer with where the real one will only be known after the preview. */
export const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

export const isUnknown = (value: unknown): boolean => unknowns.has(value);

export const isProperties = (value: Value): value is Properties =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a value, or anything within it, is not known yet. */
export function hasUnknown(value: Value): boolean {
  if (Array.isArray(value)) {
    return value.some(hasUnknown);
  }
  return isProperties(value) ? Object.values(value).some(hasUnknown) : isUnknown(value);
}

/** Marks a value, so that the engine encrypts it in the state and hides it on the screen. */
export const secret = (value: Value): Properties => ({ [signature]: secretSignature, value });

function unwrapped(value: Value): Value {
  if (Array.isArray(value)) {
    return value.map(unwrapped);
  }
  if (!isProperties(value)) {
    return value;
  }
  if (value[signature] === secretSignature) {
    return unwrapped(value.value);
  }
  if (value[signature] === outputSignature) {
    return "value" in value ? unwrapped(value.value) : unknown;
  }
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, unwrapped(part)]));
}

function defined(value: Value): Value {
  if (Array.isArray(value)) {
    return value.map((part) => (part === undefined ? null : defined(part)));
  }
  if (!isProperties(value)) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, part]) =>
      part === undefined ? [] : [[key, defined(part)] as const],
    ),
  );
}

/** Reads what the engine sent; which parts were secret is for the engine to remember. */
export const decoded = (message: Message | undefined): Properties =>
  unwrapped((message?.toJavaScript() ?? {}) as Properties) as Properties;

export const encoded = (properties: Properties): Message =>
  Struct.fromJavaScript(defined(properties) as Plain);

/**
 * The resource exists and belongs into the state, but it is not what was asked for: the next update
 * goes on with it.
 */
export class Unready extends Error {
  constructor(
    readonly id: string,
    readonly state: Properties,
    readonly inputs: Properties,
    readonly reasons: readonly string[],
  ) {
    super(reasons.join("; "));
  }
}

/**
 * An error as the engine reads it. Its code says that nothing is left half done, unless the state
 * says so.
 */
export function statusOf(error: unknown): Partial<Grpc.ServiceError> {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof Unready)) {
    return { code: status.FAILED_PRECONDITION, details: message };
  }
  const detail = new ErrorResourceInitFailed();
  detail.setId(error.id);
  detail.setProperties(encoded(error.state));
  detail.setInputs(encoded(error.inputs));
  detail.setReasonsList([...error.reasons]);
  const any = new Any();
  any.pack(detail.serializeBinary(), "pulumirpc.ErrorResourceInitFailed");
  const full = new Status();
  full.setCode(status.UNKNOWN);
  full.setMessage(message);
  full.addDetails(any);
  const metadata = new Metadata();
  metadata.add("grpc-status-details-bin", Buffer.from(full.serializeBinary()));
  return { code: status.UNKNOWN, details: message, metadata };
}
