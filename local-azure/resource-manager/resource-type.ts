import { Machines } from "../machines/machines";
import { AzureError } from "./azure-error";
import { ArmId } from "./ids";

/** A resource as the SDK sends and returns it: what ARM nests under `properties` lies flat. */
export type Body = { [property: string]: unknown };

export interface Failure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

export interface Resource<B extends Body = Body> {
  readonly id: string;
  /** ARM's type, as `Microsoft.Network/virtualNetworks`. */
  readonly type: string;
  body: B;
  /** Kept and never shown: what no GET of Azure returns, digests of secrets, reservations. */
  hidden: Body;
  changed: string;
  /** Why the last operation failed. */
  failure?: Failure;
}

export interface Reference {
  /** Id of the referring part: a NIC's ipConfiguration, a balancer's frontend, else the resource itself. */
  readonly from: string;
  /** Id of the resource that refers. */
  readonly owner: string;
  readonly to: string;
  /** The private address that this use of a subnet holds. */
  readonly address?: string;
  /** What is said when the target is missing; Network's wording when left out. */
  readonly missing?: AzureError;
}

/** What is there, for the rules of the types. */
export interface View {
  find(id: string): Resource | undefined;
  /** Also for parts that live inside a resource, as a balancer's pool. */
  exists(id: string): boolean;
  children(id: string): Resource[];
  ofType(type: string): Resource[];
  referrers(id: string): readonly Reference[];
}

/** What a type may change besides its own resource. */
export interface Ledger extends View {
  put(resource: Resource): void;
  remove(id: string): void;
}

export interface Put<B extends Body = Body> {
  readonly id: ArmId;
  readonly body: B;
  readonly old?: Resource<B>;
  readonly now: Date;
}

export interface Accepted<B extends Body = Body> {
  readonly body: B;
  readonly hidden?: Body;
}

export interface Running<B extends Body = Body> {
  readonly resource: Resource<B>;
  readonly old?: Resource<B>;
  /** The body as it was sent, with the secrets that are not kept. */
  readonly sent: B;
  readonly ledger: Ledger;
  readonly machines: Machines;
  /** Runs a script on a machine, with what tests have ordered to fail, and notes it in the request log. */
  readonly script: (
    id: string,
    run: () => ReturnType<Machines["runScript"]>,
  ) => ReturnType<Machines["runScript"]>;
}

/** Everything there is to know about one ARM type. */
export interface ResourceType<B extends Body = Body> {
  /** Pulumi's name of it. */
  readonly token: string;
  readonly type: string;
  /** What azure-native 3.28 uses by default. */
  readonly apiVersion: string;
  /** ARM's path with azure-native's parameter names; the last one is the resource's own name. */
  readonly path: string;
  /** What azure-native calls it when the program does not: URN name and eight digits, a copy, or a UUID. */
  readonly autoName: "random" | "copy" | "uuid";
  /** Properties that a program may set. */
  readonly inputs: readonly string[];
  readonly required: readonly string[];
  /** Properties whose change azure-native answers by a replacement, besides those in the path. */
  readonly forceNew?: readonly string[];
  /** Lists that can also be managed as resources of their own; azure-native sends back what it finds there. */
  readonly maintained?: readonly string[];
  /** Paths inside inputs that only Azure writes, `[]` for each element. */
  readonly readOnly?: readonly string[];
  /** Lists whose elements have ids of their own. */
  readonly parts?: readonly string[];
  readonly zones?: { readonly most: number };
  /** The rule for its name; Azure's usual one when left out. */
  readonly name?: RegExp;
  /** While an operation holds this, Azure refuses others on it: the network of a subnet, the group of a rule. */
  lock?(id: ArmId): string;

  references?(body: B, id: string): Reference[];
  /** Refuses, or completes the body by what Azure fills in. Changes nothing. */
  accept(put: Put<B>, view: View): Accepted<B>;
  /** Changes of other resources that come with this one. */
  commit?(resource: Resource<B>, ledger: Ledger, now: Date, old?: Resource<B>): void;
  /** The operation itself, for what lives on machines. */
  run?(running: Running<B>): Promise<void>;
  /** After a creation that failed. */
  failed?(resource: Resource<B>, ledger: Ledger, now: Date): void;
  /** What becomes of an operation that was under way when the process ended; it succeeded when left out. */
  interrupted?(resource: Resource<B>): void;
  /** What GET shows besides the body: traces of resources that point here. */
  shown?(resource: Resource<B>, view: View): Body;
  /** The SDK's input shape of a body, where it differs from the output's. */
  toInputs?(body: Body): Body;
  mayDelete?(resource: Resource<B>, view: View, now: Date): void;
  deleted?(resource: Resource<B>, ledger: Ledger): void;
}
