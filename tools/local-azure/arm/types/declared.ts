import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { type AzureError, badRequest, invalidParameter, refuse } from "../azure-error";
import { type Body, isBody } from "../resources/resource";
import type { ResourceType } from "./resource-type";

/** What azure-native's package, which is generated from Azure's specification, declares of a property. */
type Declared = string;

const sdk = dirname(require.resolve("@pulumi/azure-native/package.json"));
const known = new Map<string, ReadonlyMap<string, Declared>>();

/** Its list of sizes ended in 2018. */
const outdated = "enums.compute.VirtualMachineSizeTypes";

/**
 * A body of the types that are declared, without what is null, which to Azure is the same as nothing. What is
 * not declared is newer or read-only, and may be anything.
 *
 * @param list of which the body is an element
 */
export function conforming(type: ResourceType, body: unknown, list?: string): Body {
  if (list === undefined && isBody(body)) checkTags(type, body["tags"] ?? {});
  const own = membersOf(type.token, () => argumentsOf(type.token));
  const declared = list === undefined ? undefined : own.get(list)?.replace(/\[\]$/, "");
  const reader = new Reader(type);
  return (
    declared === undefined ? reader.object(body, own, "") : reader.value(body, declared, list!)
  ) as Body;
}

/**
 * What is longer, or more, than Azure takes.
 *
 * @see https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations
 */
function checkTags({ type }: Pick<ResourceType, "type">, tags: object): void {
  const names = Object.keys(tags);
  const longest = type === "Microsoft.Storage/storageAccounts" ? 128 : 512;
  const lowerCased = names.map((name) => name.toLowerCase());
  const problems = [
    // Of what the portal hides, such as hidden-link:RESOURCE, Azure takes a resource's id.
    names.some((name) => /^(?!hidden-).*[<>%&\\?/]/i.test(name)) && [
      "InvalidTagNameCharacters",
      `The tag names '${names.join(", ")}' have reserved characters '<,>,%,&,\\,?,/' or control characters.`,
    ],
    new Set(lowerCased).size < names.length && [
      "InvalidRequestContent",
      `The request content was invalid: the tag names '${names.join(", ")}' differ in case alone.`,
    ],
    names.some((name) => name.length > longest) && [
      "InvalidTagName",
      `Tag name too large. The maximum length of a tag name is '${longest}' characters.`,
    ],
    Object.values(tags).some((value) => String(value).length > 256) && [
      "InvalidTagValueLength",
      "Tag value too large. The maximum length of a tag value is '256' characters.",
    ],
    names.length > 50 && [
      "TooManyTags",
      `The resource has '${names.length}' tags. The maximum number of tags is '50'.`,
    ],
  ];
  const [code, message] = problems.find((problem) => problem !== false) ?? [];
  if (code !== undefined) throw refuse(code, message!);
}

class Reader {
  constructor(private readonly type: Pick<ResourceType, "type">) {}

  object(value: unknown, members: ReadonlyMap<string, Declared>, path: string): Body {
    if (!isBody(value)) throw malformed(this.type, path, "an object", value);
    const entries = Object.entries(value).filter(([, inner]) => inner != null);
    return Object.fromEntries(
      entries.map(([key, inner]) => [
        key,
        this.value(inner, members.get(key), path === "" ? key : `${path}.${key}`),
      ]),
    );
  }

  value(value: unknown, declared: Declared | undefined, path: string): unknown {
    if (declared === undefined) return value;
    // On the wire the ids are keys.
    if (path.endsWith("identity.userAssignedIdentities") && isBody(value)) return value;
    if (declared.endsWith("[]")) {
      if (!Array.isArray(value)) throw malformed(this.type, path, "an array", value);
      const element = declared.slice(0, -2);
      return value.map((one, index) => this.value(one, element, `${path}[${index}]`));
    }
    const [, ofMap] = /^\{(.+)\}$/.exec(declared) ?? [];
    if (ofMap !== undefined) {
      if (!isBody(value)) throw malformed(this.type, path, "an object", value);
      const entries = Object.entries(value);
      return Object.fromEntries(
        entries.map(([key, one]) => [key, this.value(one, ofMap, `${path}.${key}`)]),
      );
    }
    const [, model] = /^inputs\.([\w.]+)$/.exec(declared) ?? [];
    if (model !== undefined) {
      return this.object(
        value,
        membersOf(model, () => modelOf(model)),
        path,
      );
    }
    const [, enumeration] = /^(?:string \| )?(enums\.[\w.]+)$/.exec(declared) ?? [];
    const scalar = enumeration === undefined ? declared : "string";
    if (["string", "number", "boolean"].includes(scalar) && typeof value !== scalar) {
      throw malformed(this.type, path, `a ${scalar}`, value);
    }
    if (enumeration !== undefined && enumeration !== outdated) {
      const choices = valuesOf(enumeration);
      if (!choices.map(spelling).includes(spelling(String(value))))
        throw unknownValue(this.type, path, String(value), choices);
    }
    return value;
  }
}

/** In lower case, and without the space in `SystemAssigned, UserAssigned`. */
const spelling = (choice: string): string => choice.toLowerCase().replaceAll(" ", "");

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** The refusal of what cannot be read. It may be a secret. */
export const malformed = (
  type: Pick<ResourceType, "type">,
  path: string,
  wanted: string,
  value: unknown,
): AzureError =>
  unread(
    type,
    `Error converting a value. Path '${path}' has ${kindOf(value)}, and has to be ${wanted}.`,
  );

function unread({ type }: Pick<ResourceType, "type">, reason: string): AzureError {
  if (/^Microsoft\.Network\//i.test(type))
    return refuse("InvalidRequestFormat", `Cannot parse the request: ${reason}`);
  if (/^Microsoft\.Compute\//i.test(type)) return badRequest(reason);
  return refuse(
    "InvalidRequestContent",
    `The request content was invalid and could not be deserialized: '${reason}'.`,
  );
}

function unknownValue(
  type: Pick<ResourceType, "type">,
  path: string,
  value: string,
  choices: readonly string[],
): AzureError {
  const reason = `The value '${value}' of parameter '${path}' is not one of ${choices.join(", ")}.`;
  return type.type.startsWith("Microsoft.Network/")
    ? unread(type, reason)
    : invalidParameter(reason, path);
}

function membersOf(name: string, declaration: () => string): ReadonlyMap<string, Declared> {
  let members = known.get(name);
  if (members === undefined) {
    const text = declaration()
      .replace(/\/\*\*[\s\S]*?\*\//g, "")
      .replace(/pulumi\.Input<|>| \| undefined/g, "")
      .replace(/\{\s*\[key: string\]: ([^;]+);\s*\}/g, "{$1}");
    const lines = [...text.matchAll(/^\s+(\w+)\??: (.+);$/gm)];
    known.set(name, (members = new Map(lines.map(([, key, declared]) => [key!, declared!]))));
  }
  return members;
}

/** The arguments of a resource. */
function argumentsOf(token: string): string {
  const [, module = "", name = ""] = token.split(":");
  const file = `${name.replace(/^./, (letter) => letter.toLowerCase())}.d.ts`;
  return readFileSync(join(sdk, module, file), "utf8").split(`interface ${name}Args {`)[1]!;
}

let models: string | undefined;

/** A model of several resources. */
function modelOf(name: string): string {
  models ??= readFileSync(join(sdk, "types", "input.d.ts"), "utf8");
  const [module, model] = name.split(".");
  const start = models.indexOf(`    interface ${model} {`, models.indexOf(`namespace ${module} {`));
  return models.slice(models.indexOf("\n", start), models.indexOf("\n    }\n", start) + 1);
}

/** The values of an enumeration. */
function valuesOf(name: string): string[] {
  const [, module, enumeration = ""] = name.split(".");
  const all = require(join(sdk, "types", "enums", module!)) as Record<string, object>;
  return Object.values(all[enumeration]!).map(String);
}
