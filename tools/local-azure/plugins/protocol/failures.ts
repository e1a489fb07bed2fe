import { createRequire } from "node:module";
import type * as Grpc from "@grpc/grpc-js";
import { ErrorResourceInitFailed } from "@pulumi/pulumi/proto/provider_pb";
import { Status } from "@pulumi/pulumi/proto/status_pb";
import { encoded, Properties } from "./values";

const ofPulumi = createRequire(require.resolve("@pulumi/pulumi"));
const { Metadata, status } = ofPulumi("@grpc/grpc-js") as typeof Grpc;
const { Any } = ofPulumi(
  "google-protobuf/google/protobuf/any_pb.js",
) as typeof import("google-protobuf/google/protobuf/any_pb");

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
