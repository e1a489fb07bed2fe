import { keyOf, parseId } from "./ids";
import { Body, Ledger, Reference, Resource } from "./resource-type";
import { typeOf } from "./types";

/** All resources, findable by id, by what they are nested in, by type, and by what points at them. */
export class Inventory implements Ledger {
  private readonly resources = new Map<string, Resource>();
  private readonly nested = new Map<string, Set<string>>();
  private readonly types = new Map<string, Set<string>>();
  private readonly pointing = new Map<string, Reference[]>();
  private readonly pointers = new Map<string, Reference[]>();

  constructor(resources: Iterable<Resource> = []) {
    for (const resource of resources) this.put(resource);
  }

  all(): Iterable<Resource> {
    return this.resources.values();
  }

  get size(): number {
    return this.resources.size;
  }

  find(id: string): Resource | undefined {
    return this.resources.get(keyOf(id));
  }

  exists(id: string): boolean {
    if (this.resources.has(keyOf(id))) return true;
    const part = parseId(id);
    const whole = part && this.find(part.parent);
    const list =
      part &&
      whole &&
      typeOf(whole.type)?.parts?.find((name) =>
        part.type.toLowerCase().endsWith(`/${name.toLowerCase()}`),
      );
    if (!list) return false;
    const elements = (whole.body[list] ?? []) as { name?: string }[];
    return elements.some(({ name }) => name?.toLowerCase() === part.name.toLowerCase());
  }

  children(id: string): Resource[] {
    return this.pick(this.nested.get(keyOf(id)));
  }

  /** Everything below an id, outermost first. */
  descendants(id: string): Resource[] {
    return this.children(id).flatMap((child) => [child, ...this.descendants(child.id)]);
  }

  ofType(type: string): Resource[] {
    return this.pick(this.types.get(type.toLowerCase()));
  }

  referrers(id: string): readonly Reference[] {
    return this.pointing.get(keyOf(id)) ?? [];
  }

  /** As GET shows it. */
  shown(resource: Resource): Body {
    return {
      ...resource.body,
      ...typeOf(resource.type)?.shown?.(resource, this),
      id: resource.id,
      name: resource.id.split("/").at(-1),
    };
  }

  put(resource: Resource): void {
    const key = keyOf(resource.id);
    const parsed = parseId(resource.id);
    if (parsed === undefined)
      throw new Error(`the local Azure holds ${resource.id}, which is no resource id`);
    this.forget(key);
    this.resources.set(key, resource);
    add(this.nested, keyOf(parsed.parent), key);
    add(this.types, resource.type.toLowerCase(), key);
    const references = typeOf(resource.type)?.references?.(resource.body, resource.id) ?? [];
    this.pointers.set(key, references);
    for (const reference of references) {
      const target = keyOf(reference.to);
      const list = this.pointing.get(target);
      if (list) list.push(reference);
      else this.pointing.set(target, [reference]);
    }
  }

  remove(id: string): void {
    const resource = this.find(id);
    const parsed = parseId(id);
    if (resource === undefined || parsed === undefined) return;
    const key = keyOf(id);
    this.forget(key);
    this.resources.delete(key);
    this.nested.get(keyOf(parsed.parent))?.delete(key);
    this.types.get(resource.type.toLowerCase())?.delete(key);
  }

  private forget(key: string): void {
    for (const { to } of this.pointers.get(key) ?? []) {
      const left = (this.pointing.get(keyOf(to)) ?? []).filter(({ owner }) => keyOf(owner) !== key);
      if (left.length > 0) this.pointing.set(keyOf(to), left);
      else this.pointing.delete(keyOf(to));
    }
    this.pointers.delete(key);
  }

  private pick(keys: Iterable<string> = []): Resource[] {
    return [...keys].flatMap((key) => this.resources.get(key) ?? []);
  }
}

function add(index: Map<string, Set<string>>, under: string, key: string): void {
  const set = index.get(under);
  if (set) set.add(key);
  else index.set(under, new Set([key]));
}
