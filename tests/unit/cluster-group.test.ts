import * as pulumi from "@pulumi/pulumi";

import { clusterGroup } from "../../components/cluster-group";
import { Roles } from "../../components/roles";
import { Recorder, valueOf } from "../support/record";
import { subscriptionId, validSettings } from "../support/sample";

/** What is made in the group waits for these, and is deleted before them. */
const awaitedBy = (output: pulumi.Output<string>): Promise<Set<pulumi.Resource>> =>
  (output as unknown as { allResources(): Promise<Set<pulumi.Resource>> }).allResources();

it.each([true, false])(
  "of others has name and id in a preview (%s), and comes after the roles without being made",
  async (preview) => {
    const recorder = await Recorder.start({ preview });
    const plan = { settings: { ...validSettings, resourceGroup: "platform" }, subscriptionId };
    const watched = { transformations: [recorder.watch] };
    const roles = new Roles("identity", plan, watched);

    const { name, id, own } = clusterGroup(plan, roles);

    expect(await valueOf(name)).toBe("platform");
    expect(await valueOf(id)).toBe(`/subscriptions/${subscriptionId}/resourceGroups/platform`);
    for (const output of [name, id]) expect([...(await awaitedBy(output))]).toContain(roles);
    expect(own).toBeUndefined();
  },
);
