import { isProperties, Properties } from "../../protocol/values";
import { Refused } from "../api/client";
import { isSecret, text, titleOf } from "../objects";

/** What the server says about a Secret can quote it. */
function withoutContents(message: string, object: Properties): string {
  if (!isSecret(object)) {
    return message;
  }
  const data = isProperties(object.data) ? Object.values(object.data).map(text) : [];
  const contents = [...data, ...data.map((value) => Buffer.from(value, "base64").toString())];
  // A decoder quotes what lies around its error, and a type error the whole value.
  const cut = message.split(/\.\.\.\||, got |: Invalid value: |Value:/)[0] ?? "";
  return contents
    .filter((value) => value.length > 3)
    .reduce((text, value) => text.replaceAll(value, "[secret]"), cut);
}

/** The server's answer, in terms of the object and of what can be done. */
export function explained(error: unknown, object: Properties, verb: string): unknown {
  if (!(error instanceof Refused)) {
    return error;
  }
  const title = titleOf(object);
  const required = error.causes.find(({ reason }) => reason === "FieldValueRequired");
  if (verb === "relinquished" && required) {
    return new Error(
      `this Patch of ${title} manages a field that the object must have: ${text(required.field)}. ` +
        `Set the resource option retainOnDelete, or let another manager set the field first`,
    );
  }
  const why = withoutContents(error.message, object);
  return new Error(`${title} could not be ${verb}: ${why} (${error.reason || error.code})`);
}
