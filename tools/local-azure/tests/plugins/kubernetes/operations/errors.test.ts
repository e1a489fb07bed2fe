import { Refused } from "../../../../plugins/kubernetes/api/client";
import { explained } from "../../../../plugins/kubernetes/operations/errors";

const object = (kind: string, data = {}) => ({
  apiVersion: "v1",
  kind,
  metadata: { name: "it", namespace: "here" },
  data,
});

const messageOf = (error: unknown) => (error as Error).message;

it("does not repeat what the server quotes of a Secret", () => {
  const key = Buffer.from("hush-hush").toString("base64");
  const refusal = new Refused(400, {
    reason: "BadRequest",
    message: `illegal hush-hush or ${key}, error found in ...|"hush"|...`,
  });

  expect(messageOf(explained(refusal, object("Secret", { key }), "created"))).toMatch(
    /^Secret here\/it could not be created: illegal \[secret\] or \[secret\], error found in +\(BadR/,
  );
});

it("repeats what the server says of anything else", () => {
  const refusal = new Refused(422, { reason: "Invalid", message: 'a: Invalid value: "b"' });

  expect(messageOf(explained(refusal, object("ConfigMap"), "created"))).toBe(
    'ConfigMap here/it could not be created: a: Invalid value: "b" (Invalid)',
  );
});

it("says how to let go of a Patch whose field the object must have", () => {
  const causes = [{ reason: "FieldValueRequired", field: "spec.selector" }];
  const refusal = new Refused(422, { reason: "Invalid", details: { causes } });

  expect(messageOf(explained(refusal, object("ConfigMap"), "relinquished"))).toMatch(
    /^this Patch of ConfigMap here\/it manages a field that the object must have: spec\.selector\. Set .* retainOnDelete/,
  );
});

it("leaves errors of others alone", () => {
  const error = new Error("no answer");

  expect(explained(error, object("ConfigMap"), "created")).toBe(error);
});
