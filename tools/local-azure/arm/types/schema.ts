import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { idTemplates } from "../../../recover/azure";
import type { ResourceType } from "./resource-type";

/** What azure-native's package has of a type, which is generated from Azure's specification. */
interface Schema {
  /** The version that azure-native uses by default. */
  readonly apiVersion: string;
  /** Properties that a program may set, besides those in the path. */
  readonly inputs: readonly string[];
  /** Paths of those that it must set. */
  readonly required: readonly string[];
  /** What the package puts in for a property that a program leaves out. */
  readonly defaults: Readonly<Record<string, string | boolean>>;
}

const sdk = dirname(require.resolve("@pulumi/azure-native/package.json"));
const schemas = new Map<string, Schema>();

type Described = Pick<ResourceType, "token" | "required" | "readOnly" | "besides">;

export function schemaOf(type: Described): Schema {
  const known = schemas.get(type.token);
  if (known !== undefined) return known;
  const schema = readSchema(type);
  schemas.set(type.token, schema);
  return schema;
}

function readSchema({ token, required = [], readOnly = [], besides = [] }: Described): Schema {
  const [, module = "", name = ""] = token.split(":");
  const file = `${name.replace(/^./, (letter) => letter.toLowerCase())}.js`;
  const text = readFileSync(join(sdk, module, file), "utf8");
  const given = [...text.matchAll(/resourceInputs\["(\w+)"\] = (?!undefined)(.+);/g)];
  const names = given.map(([, input]) => input!);
  // Models of Network are those of a reference, too.
  const ofReference = names.includes("id") ? ["id", "name", "type"] : [];
  const isOwn = (input: string): boolean =>
    ![...ofReference, ...readOnly].includes(input) && !idTemplates[token]!.includes(`{${input}}`);
  return {
    apiVersion: /Uses Azure REST API version ([\w-]+)/.exec(text)![1]!,
    inputs: [...names.filter(isOwn), ...besides],
    required: [
      ...[...text.matchAll(/args\?\.(\w+) === undefined/g)]
        .map(([, input]) => input!)
        .filter(isOwn),
      ...required,
    ],
    defaults: Object.fromEntries(
      given.flatMap(([, input, value]) => {
        const [, byDefault] = / \?\? (.+)$/.exec(value!) ?? [];
        return byDefault === undefined ? [] : [[input, JSON.parse(byDefault) as string | boolean]];
      }),
    ),
  };
}
