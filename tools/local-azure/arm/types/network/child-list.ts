import { keyOf } from "../../resources/ids";
import { Body, Ledger, pick, Resource, View } from "../../resources/resource";
import { ResourceType } from "../resource-type";
import { schemaOf } from "../schema";

/**
 * A list whose elements are resources of their own too: the subnets of a network, the rules of a
 * security group. A PUT with the list replaces them all.
 */
export class ChildList<B extends Body> {
  constructor(
    private readonly list: string,
    private readonly child: ResourceType<B>,
    private readonly complete: (body: B) => Body,
  ) {}

  idOf(owner: string, name: string): string {
    return `${owner}/${this.list}/${name}`;
  }

  /** The children that a PUT with this list deletes. */
  dropped(owner: string, wanted: readonly { readonly name: string }[], view: View): Resource[] {
    const kept = new Set(wanted.map(({ name }) => keyOf(this.idOf(owner, name))));
    return view.children(owner, this.child.type).filter(({ id }) => !kept.has(keyOf(id)));
  }

  commit(resource: Resource, ledger: Ledger, now: Date): void {
    const wanted = (resource.body[this.list] ?? []) as (B & { name: string })[];
    for (const { id } of this.dropped(resource.id, wanted, ledger)) ledger.remove(id);
    for (const sent of wanted) {
      const id = this.idOf(resource.id, sent.name);
      ledger.put({
        id: ledger.find(id)?.id ?? id,
        type: this.child.type,
        body: {
          ...this.complete(pick(sent, schemaOf(this.child).inputs) as B),
          provisioningState: "Succeeded",
        },
        hidden: {},
        changed: now.toISOString(),
      });
    }
    delete resource.body[this.list];
  }

  shown(owner: string, view: View): Body[] {
    return view.children(owner, this.child.type).map(({ id, body }) => ({
      ...body,
      id,
      name: id.split("/").at(-1),
      type: this.child.type,
    }));
  }
}
