import { createRequire } from "node:module";
import type * as Grpc from "@grpc/grpc-js";
import { ErrorResourceInitFailed } from "@pulumi/pulumi/proto/provider_pb";
import { Status } from "@pulumi/pulumi/proto/status_pb";
import { statusOf, Unready } from "../../../plugins/protocol/failures";

const { status } = createRequire(require.resolve("@pulumi/pulumi"))("@grpc/grpc-js") as typeof Grpc;

it("reports a plain error as one that left nothing half done", () => {
  expect(statusOf(new Error("the name is taken"))).toEqual({
    code: status.FAILED_PRECONDITION,
    details: "the name is taken",
  });
});

it("hands the state of an unready resource to the engine with the reasons", () => {
  const error = new Unready("default/web", { kind: "Deployment" }, { a: 1 }, ["first", "second"]);

  const [bytes] = statusOf(error).metadata?.get("grpc-status-details-bin") ?? [];

  const [detail] = Status.deserializeBinary(bytes as Buffer).getDetailsList();
  const failed = detail?.unpack(
    ErrorResourceInitFailed.deserializeBinary,
    "pulumirpc.ErrorResourceInitFailed",
  );
  expect(failed?.getId()).toBe("default/web");
  expect(failed?.getReasonsList()).toEqual(["first", "second"]);
  expect(failed?.getProperties()?.toJavaScript()).toEqual({ kind: "Deployment" });
  expect(failed?.getInputs()?.toJavaScript()).toEqual({ a: 1 });
});
