import { Durations } from "../../local-azure/arm/durations";
import { assumed, bootSeconds } from "./paced-machines";

/** A resource as the stack's state has it. */
export interface StateResource {
  readonly urn: string;
  readonly type: string;
  readonly id?: string;
  readonly inputs?: Readonly<Record<string, unknown>>;
}

export interface Link {
  readonly name: string;
  readonly seconds: number;
}

interface Work extends Link {
  /** Indexes of the works that must have ended before this one can begin. */
  readonly after: readonly number[];
}

const azureTypes = {
  group: "azure-native:resources:ResourceGroup",
  subnet: "azure-native:network:Subnet",
  rule: "azure-native:network:SecurityRule",
  machine: "azure-native:compute:VirtualMachine",
  step: "azure-native:compute:VirtualMachineExtension",
} as const;

/**
 * The longest chain of operations in a first update that Azure, kubeadm and etcd require, independent
 * of the order in the program:
 *
 * - a resource comes after its group, its parent and all that its inputs name;
 * - Azure changes one subnet of a network, and one rule of a security group, at a time;
 * - a machine boots when it is there, and its step needs the agent's handler and the first boot;
 * - no machine joins before the cluster is initialized, and etcd admits one control plane at a time.
 */
export function longestChain(state: readonly StateResource[]): readonly Link[] {
  const azure = state.filter(({ type, id }) => type.startsWith("azure-native:") && id);
  const durations = new Durations({ factor: 1 });
  const works: Work[] = [];
  const ended = new Map<string, number>();
  const lastOf = new Map<string, number>();

  const add = (name: string, seconds: number, after: readonly number[]): number =>
    works.push({ name, seconds, after: [...new Set(after)] }) - 1;

  const make = (resource: StateResource): number => {
    const key = keyOf(resource);
    const known = ended.get(key);
    if (known !== undefined) return known;
    const needs = azure.filter((other) => other !== resource && needsIt(resource, other)).map(make);
    const line = oneAtATime(resource);
    if (line !== undefined && lastOf.has(line)) needs.push(lastOf.get(line)!);
    const name = nameOf(resource);
    const own = durations.milliseconds(armType(resource), "create") / 1000;
    let end = add(name, own, needs);
    if (resource.type === azureTypes.machine)
      end = add(`${name}: first boot`, bootSeconds(isOfGallery(resource)), [end]);
    if (line !== undefined) lastOf.set(line, end);
    ended.set(key, end);
    return end;
  };

  for (const resource of azure.filter(({ type }) => type !== azureTypes.step)) make(resource);
  const steps = azure
    .filter(({ type }) => type === azureTypes.step)
    .map((resource) => nameOf(resource))
    .sort();
  const handler = durations.milliseconds(`${vmType}/extensions`, "create") / 1000;
  const bootOf = (step: string): number =>
    works.findIndex(({ name }) => name === `${step.replace(/\/.*/, "")}: first boot`);
  const vmOf = (step: string): number => works[bootOf(step)]!.after[0]!;
  const run = (step: string, what: string, seconds: number, before: readonly number[]): number => {
    const installed = add(`${step}: the agent's handler`, handler, [vmOf(step), ...before]);
    return add(`${step}: ${what}`, seconds, [installed, bootOf(step)]);
  };
  const [first = "", ...others] = steps.filter((step) => /-cp-\d+\//.test(step));
  const initialized = run(first, "kubeadm init", assumed.kubeadmInit, []);
  let before = initialized;
  for (const step of others) {
    before = run(step, "kubeadm join", assumed.controlPlaneJoin, [before]);
  }
  for (const step of steps.filter((one) => !/-cp-\d+\//.test(one))) {
    run(step, "kubeadm join", assumed.workerJoin, [initialized]);
  }
  return longestPath(works);
}

const isOfGallery = ({ inputs }: StateResource): boolean =>
  (inputs as { storageProfile?: { imageReference?: { id?: string } } } | undefined)?.storageProfile
    ?.imageReference?.id !== undefined;

const vmType = "Microsoft.Compute/virtualMachines";

/** Works come after all that they wait for. */
function longestPath(works: readonly Work[]): readonly Link[] {
  const totals: number[] = [];
  const through: (number | undefined)[] = [];
  works.forEach(({ seconds, after }, index) => {
    const latest = after.reduce<number | undefined>(
      (best, one) => (best === undefined || totals[one]! > totals[best]! ? one : best),
      undefined,
    );
    through[index] = latest;
    totals[index] = seconds + (latest === undefined ? 0 : totals[latest]!);
  });
  const path: Link[] = [];
  let at: number | undefined = totals.indexOf(Math.max(...totals));
  for (; at !== undefined; at = through[at]) path.unshift(works[at]!);
  return path;
}

const keyOf = ({ id = "" }: StateResource): string => id.toLowerCase();

/** Whether a resource lies in the other one or names it, or a part of it, in its inputs. */
function needsIt(resource: StateResource, other: StateResource): boolean {
  const key = keyOf(other);
  if (keyOf(resource).startsWith(`${key}/`)) return true;
  // A group's name is in everything's id; a resource's own parts are no other resource.
  if (other.type === azureTypes.group) return false;
  return idsIn(resource.inputs).some((id) => id === key || id.startsWith(`${key}/`));
}

function idsIn(value: unknown): string[] {
  if (typeof value === "string")
    return value.startsWith("/subscriptions/") ? [value.toLowerCase()] : [];
  if (typeof value !== "object" || value === null) return [];
  return [...Object.keys(value).flatMap(idsIn), ...Object.values(value).flatMap(idsIn)];
}

function oneAtATime({ type, id = "" }: StateResource): string | undefined {
  const isInLine = type === azureTypes.subnet || type === azureTypes.rule;
  return isInLine ? id.split("/").slice(0, -2).join("/").toLowerCase() : undefined;
}

/** `Microsoft.Network/virtualNetworks/subnets` from an id. */
function armType({ id = "", type }: StateResource): string {
  if (type === azureTypes.group) return "Microsoft.Resources/resourceGroups";
  const [namespace, ...parts] = id.split("/providers/").at(-1)!.split("/");
  return [namespace, ...parts.filter((_, index) => index % 2 === 0)].join("/");
}

/** The names of an id's parts below its group: `vnet/nodes-1`. */
function nameOf({ id = "" }: StateResource): string {
  const [, below] =
    id.split("/providers/").length > 1 ? [0, id.split("/providers/").at(-1)!] : [0, undefined];
  if (below === undefined) return id.split("/").at(-1)!;
  return below
    .split("/")
    .filter((_, index) => index > 0 && index % 2 === 0)
    .join("/");
}
