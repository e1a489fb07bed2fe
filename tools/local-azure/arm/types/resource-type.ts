import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { idTemplates } from "../../../recover/azure";
import { Machines } from "../../machines/machines";
import { AzureError } from "../azure-error";
import { ArmId, Body, Ledger, Reference, Resource, View } from "../resources/resource";

export interface Put<B extends Body = Body> {
  readonly id: ArmId;
  readonly body: B;
  readonly old?: Resource<B>;
  readonly now: Date;
  /** The share of Azure's time that things take here; 0 is none. */
  readonly pace: number;
}

export interface Accepted<B extends Body = Body> {
  readonly body: B;
  readonly hidden?: Body;
}

/** What a role may allow. */
export interface Right {
  readonly action: string;
  /** Id of the resource. */
  readonly scope: string;
}

export interface Running<B extends Body = Body> {
  readonly resource: Resource<B>;
  readonly old?: Resource<B>;
  /** The body as it was sent, with the secrets that are not kept. */
  readonly sent: B;
  readonly ledger: Ledger;
  readonly machines: Machines;
  /**
   * Runs a script on a machine, applies faults and breakpoints, and writes it to the request
   * log.
   */
  readonly script: (
    id: string,
    run: () => ReturnType<Machines["runScript"]>,
  ) => ReturnType<Machines["runScript"]>;
}

/** An ARM type: its schema, its validation and what its operations do. */
export interface ResourceType<B extends Body = Body> {
  /** Pulumi's type token. */
  readonly token: string;
  readonly type: string;
  /** Inputs of later versions than azure-native's own. */
  readonly besides?: readonly string[];
  /** Paths of inputs that Azure wants, besides those that azure-native's package demands. */
  readonly required?: readonly string[];
  /** Properties whose change azure-native answers by a replacement, besides those in the path. */
  readonly forceNew?: readonly string[];
  /**
   * By the path of a list, the property by which azure-native tells its elements apart (x-ms-identifiers in
   * Azure's specification).
   */
  readonly identifiers?: Readonly<Record<string, string>>;
  /**
   * Lists whose elements can also be resources of their own. When the program leaves one out,
   * azure-native sends the current list.
   */
  readonly maintainIfUnset?: readonly string[];
  /** Paths inside inputs that are not for a program to set, `[]` for each element. */
  readonly readOnly?: readonly string[];
  /** Lists whose elements have ids of their own. */
  readonly subResources?: readonly string[];
  /** Paths of further elements that have `properties` of their own in ARM's JSON. */
  readonly nested?: readonly string[];
  /** ARM's names of properties that azure-native calls otherwise. */
  readonly armNames?: Readonly<Record<string, string>>;
  /** Whether a PUT leaves alone what it does not name, as Compute's of machines does. */
  readonly mergesOnPut?: boolean;
  /** Whether it is in no region: its location is `global`. @default false */
  readonly isGlobal?: boolean;
  /** Whether Azure shows no provisioningState. @default false */
  readonly isStateless?: boolean;
  /** What PATCH takes besides tags. @default nothing */
  readonly patches?: "inputs";
  /** Names of tags that Azure keeps; it drops others without a word. @default all */
  readonly tagName?: RegExp;
  readonly zones?: { readonly most: number };
  /** @default up to 260 characters without a slash */
  readonly name?: RegExp;
  /**
   * The resource on which Azure allows one operation at a time: the network of a subnet, the
   * security group of a rule.
   */
  lock?(id: ArmId): string;
  /**
   * The error while another operation has it.
   *
   * @default AnotherOperationInProgress
   */
  locked?(lock: string): AzureError;

  references?(body: B, id: string): Reference[];
  /**
   * What Azure wants of whoever writes this body, besides the right to write it: rights to what it
   * names elsewhere, in its own group too. Those to networks and identities follow from references.
   */
  linkedRights?(body: B): Right[];
  /** Validates the body and adds defaults. Changes nothing else. */
  accept(put: Put<B>, view: View): Accepted<B>;
  /** Changes to other resources. */
  commit?(resource: Resource<B>, ledger: Ledger, now: Date, old?: Resource<B>): void;
  /** The part of the operation that runs on machines. */
  run?(running: Running<B>): Promise<void>;
  /** After a creation that failed. */
  failed?(resource: Resource<B>, ledger: Ledger, now: Date): void;
  /**
   * Sets the state of an operation that was in progress when the process ended.
   *
   * @default Succeeded
   */
  interrupted?(resource: Resource<B>): void;
  /** Properties that GET adds to the body: back-references from other resources. */
  shown?(resource: Resource<B>, view: View): Body;
  /**
   * What a PATCH of these properties makes of them.
   *
   * @default what is sent
   */
  patched?(old: Resource<B>, sent: Body): Body;
  /** The SDK's input shape of a body, where it differs from the output's. */
  toInputs?(body: Body): Body;
  /**
   * The error for one that does not exist.
   *
   * @default ResourceNotFound
   */
  notFound?(id: ArmId): AzureError;
  /**
   * The error for a deletion while others refer to it.
   *
   * @default none: it may go
   */
  inUse?(id: string, users: readonly Reference[]): AzureError;
  /** @param pace the share of Azure's time that things take here */
  mayDelete?(resource: Resource<B>, view: View, now: Date, pace: number): void;
  deleted?(resource: Resource<B>, ledger: Ledger, now: Date): void;
}

/** Paths of all elements that have `properties` of their own in ARM's JSON. */
export const nestedIn = ({ subResources = [], nested = [] }: ResourceType): string[] => [
  ...subResources.map((list) => `${list}[]`),
  ...nested,
];

/** A body with the tags that Azure keeps. */
export const withKeptTags = ({ tagName = /^/ }: ResourceType, body: Body): Body =>
  body["tags"] === undefined
    ? body
    : {
        ...body,
        tags: Object.fromEntries(
          Object.entries(body["tags"] as object).filter(([name]) => tagName.test(name)),
        ),
      };

/** A body without its read-only properties. */
export function withoutReadOnly<B extends Body>({ readOnly = [] }: ResourceType, body: B): B {
  return readOnly.reduce<unknown>((value, path) => without(value, path.split(".")), body) as B;
}

function without(value: unknown, [step, ...rest]: readonly string[]): unknown {
  if (step === undefined || typeof value !== "object" || value === null) return value;
  const key = step.replace(/\[\]$/, "");
  const inner = (value as Body)[key];
  if (inner === undefined) return value;
  if (rest.length === 0) {
    const { [key]: _, ...others } = value as Body;
    return others;
  }
  const changed =
    step.endsWith("[]") && Array.isArray(inner)
      ? inner.map((element: unknown) => without(element, rest))
      : without(inner, rest);
  return { ...value, [key]: changed };
}

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
