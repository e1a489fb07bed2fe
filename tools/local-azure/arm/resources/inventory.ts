import { createHash } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname } from "node:path";

import { UserError } from "../../../shared/user-error";
import { nestedIn, ResourceType } from "../types/resource-type";
import { SubResourceId, subResourceOf, typeOf } from "../types/types";
import { Body, keyOf, Ledger, parseId, Reference, Resource } from "./resource";

/**
 * All resources, indexed by id, by parent, by type and by the resources that refer to them.
 */
export class Inventory implements Ledger {
  private readonly resources = new Map<string, Resource>();
  private readonly childKeys = new Map<string, Set<string>>();
  private readonly keysByType = new Map<string, Set<string>>();
  private readonly referencesTo = new Map<string, Reference[]>();
  private readonly referencesFrom = new Map<string, Reference[]>();

  constructor(resources: Iterable<Resource> = []) {
    for (const resource of resources) this.put(resource);
  }

  all(): Iterable<Resource> {
    return this.resources.values();
  }

  find(id: string): Resource | undefined {
    return this.resources.get(keyOf(id));
  }

  exists(id: string): boolean {
    if (this.resources.has(keyOf(id))) return true;
    const subResource = subResourceOf(parseId(id));
    const owner = subResource && this.find(subResource.owner.id);
    if (!owner) return false;
    const subResources = (owner.body[subResource.list] ?? []) as { name?: string }[];
    return subResources.some(({ name }) => name?.toLowerCase() === subResource.name.toLowerCase());
  }

  children(id: string, type: string): Resource[] {
    return this.allChildren(id).filter((child) => child.type === type);
  }

  /** Everything below an id, outermost first. */
  descendants(id: string): Resource[] {
    return this.allChildren(id).flatMap((child) => [child, ...this.descendants(child.id)]);
  }

  ofType(type: string): Resource[] {
    return this.resourcesOf(this.keysByType.get(type.toLowerCase()));
  }

  referrers(id: string): readonly Reference[] {
    return this.referencesTo.get(keyOf(id)) ?? [];
  }

  /** The resource as GET returns it. */
  shown(resource: Resource): Body {
    const body = this.described(resource);
    const type = typeOf(resource.type);
    if (type === undefined || !hasEtag(resource)) return body;
    const outermost = this.outermost(resource);
    return withEtag(type, body, etagOf(this.described(outermost), outermost));
  }

  private described(resource: Resource): Body {
    const type = typeOf(resource.type);
    const { provisioningState, ...body } = resource.body;
    return {
      ...body,
      ...(provisioningState !== undefined && !type?.isStateless && { provisioningState }),
      ...type?.shown?.(resource, this),
      id: resource.id,
      name: resource.id.split("/").at(-1),
    };
  }

  /** The network of a subnet, the security group of a rule. */
  private outermost(resource: Resource): Resource {
    const { names, parent } = parseId(resource.id)!;
    const owner = names.length > 1 ? this.find(parent) : undefined;
    return owner === undefined ? resource : this.outermost(owner);
  }

  /** A sub-resource as GET returns it. */
  shownSubResource({ owner, list, name }: SubResourceId): Body | undefined {
    const resource = this.find(owner.id);
    const subResources =
      resource && (this.shown(resource)[list] as { name?: string }[] | undefined);
    return subResources?.find(
      (subResource) => subResource.name?.toLowerCase() === name.toLowerCase(),
    );
  }

  put(resource: Resource): void {
    const key = keyOf(resource.id);
    const parsed = parseId(resource.id);
    if (parsed === undefined) throw new Error(`${resource.id} is not a resource id`);
    this.removeReferences(key);
    this.resources.set(key, resource);
    add(this.childKeys, keyOf(parsed.parent), key);
    add(this.keysByType, resource.type.toLowerCase(), key);
    const references = typeOf(resource.type)?.references?.(resource.body, resource.id) ?? [];
    this.referencesFrom.set(key, references);
    for (const reference of references) {
      const target = keyOf(reference.to);
      const list = this.referencesTo.get(target);
      if (list) list.push(reference);
      else this.referencesTo.set(target, [reference]);
    }
  }

  remove(id: string): void {
    const resource = this.find(id);
    const parsed = parseId(id);
    if (resource === undefined || parsed === undefined) return;
    const key = keyOf(id);
    this.removeReferences(key);
    this.resources.delete(key);
    this.childKeys.get(keyOf(parsed.parent))?.delete(key);
    this.keysByType.get(resource.type.toLowerCase())?.delete(key);
  }

  private removeReferences(key: string): void {
    for (const { to } of this.referencesFrom.get(key) ?? []) {
      const left = (this.referencesTo.get(keyOf(to)) ?? []).filter(
        ({ owner }) => keyOf(owner) !== key,
      );
      if (left.length > 0) this.referencesTo.set(keyOf(to), left);
      else this.referencesTo.delete(keyOf(to));
    }
    this.referencesFrom.delete(key);
  }

  private allChildren(id: string): Resource[] {
    return this.resourcesOf(this.childKeys.get(keyOf(id)));
  }

  private resourcesOf(keys: Iterable<string> = []): Resource[] {
    return [...keys].flatMap((key) => this.resources.get(key) ?? []);
  }
}

function add(index: Map<string, Set<string>>, indexKey: string, key: string): void {
  const set = index.get(indexKey);
  if (set) set.add(key);
  else index.set(indexKey, new Set([key]));
}

/** The etag of a resource in this condition: any write to it or to what it shows changes it. */
function etagOf(shown: Body, { type, changed }: Resource): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([shown, changed]))
    .digest("hex");
  if (!isOfNetwork(type)) return `"${digest.slice(0, 8)}"`;
  return `W/"${digest.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5")}"`;
}

const isOfNetwork = (type: string): boolean => type.startsWith("Microsoft.Network/");

const hasEtag = ({ type }: Resource): boolean =>
  isOfNetwork(type) || type === "Microsoft.Compute/virtualMachines";

/** The parts of a resource of Network have its etag. */
function withEtag(type: ResourceType, body: Body, etag: string): Body {
  if (!isOfNetwork(type.type)) return { ...body, etag };
  const lists = nestedIn(type).flatMap((path) => /^(\w+)\[\]$/.exec(path)?.[1] ?? []);
  const parts = lists.flatMap((list) => {
    const elements = body[list] as Body[] | undefined;
    return elements === undefined ? [] : [[list, elements.map((one) => ({ ...one, etag }))]];
  });
  return { ...body, ...(Object.fromEntries(parts) as Body), etag };
}

const format = 1;

/**
 * All resources in one JSON file that is never half written.
 *
 * A write goes to a temporary file that replaces it once it is on the disk. Changes during a write
 * share the next one.
 */
export class StateFile {
  private writing: Promise<void> = Promise.resolve();
  private next?: Promise<void>;

  constructor(
    private readonly path: string,
    private readonly resources: () => Iterable<Resource>,
  ) {
    mkdirSync(dirname(path), { recursive: true });
  }

  load(): Resource[] {
    let text: string;
    try {
      text = readFileSync(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw new UserError(
        `the local Azure cannot read its state, ${this.path}: ${(error as Error).message}`,
      );
    }
    let problem: string;
    try {
      const state = JSON.parse(text) as { format?: unknown; resources?: unknown };
      if (state.format === format && Array.isArray(state.resources)) {
        const resources = state.resources as Resource[];
        if (
          resources.every(
            (resource) =>
              typeof resource?.id === "string" &&
              resource.body !== null &&
              typeof resource.body === "object",
          )
        )
          return resources;
      }
      problem = `it has format ${JSON.stringify(state.format)} with ${Array.isArray(state.resources) ? "a damaged list of" : "no list of"} resources; expected format ${format}`;
    } catch (error) {
      problem = `it is not JSON: ${(error as Error).message}`;
    }
    throw new UserError(
      `the state of the local Azure, ${this.path}, cannot be used: ${problem}.\n` +
        "  It was not changed. Restore a good copy, or run npm stop, which removes it, and then npm start.",
    );
  }

  /** Resolves when all changes up to now are on the disk. */
  save(): Promise<void> {
    this.next ??= this.writing
      .catch(() => undefined)
      .then(() => {
        this.next = undefined;
        this.writing = this.write();
        return this.writing;
      });
    return this.next;
  }

  private async write(): Promise<void> {
    const text = JSON.stringify({ format, resources: [...this.resources()] });
    const temporary = `${this.path}.new`;
    const file = await open(temporary, "w", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, this.path);
  }
}
