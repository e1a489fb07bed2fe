import { parseId } from "../../../arm/resources/ids";
import { typeOf, typeOfToken } from "../../../arm/types/types";
import { Properties } from "../../../plugins/protocol/values";
import { parametersOf } from "../../../provider/paths";
import { valid } from "./valid-resources";

/** A type by its token, without azure-native before it. */
export const type = (name: string) => typeOfToken(`azure-native:${name}`)!;
/** What the engine names a request by. */
export const subject = {
  urn: "urn",
  type: "t",
  signal: new AbortController().signal,
  timeoutSeconds: 0,
};

/** The inputs of a program for a valid body. */
export const inputsOf = (kind: keyof typeof valid): Properties => {
  const [id, body] = valid[kind];
  return {
    ...(JSON.parse(JSON.stringify(body)) as Properties),
    ...parametersOf(typeOf(parseId(id)!.type)!, id),
  };
};
