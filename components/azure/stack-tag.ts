import { getOrganization, getProject, getStack } from "@pulumi/pulumi/metadata";

import type { Settings } from "../settings/settings";
import type { ShownResource } from "./shown";

/**
 * A resource group that has this tag is a stack's of this program; in one that others use too, each resource that
 * has it.
 */
export const stackTag = "zoned-stack";

/** What it says: the stack's whole name, which a backend has once. */
export const stackName = (): string => `${getOrganization()}/${getProject()}/${getStack()}`;

export const ownTag = (): Settings["tags"] => ({ [stackTag]: stackName() });

/** The tags of all resources: those of the settings, and in a group that others use too the stack's own. */
export const tagsOf = ({
  resourceGroup,
  tags,
}: Pick<Settings, "resourceGroup" | "tags">): Settings["tags"] =>
  resourceGroup === "" ? tags : { ...tags, ...ownTag() };

/** The stack that has made a resource, by its tags as Azure shows them. */
export const stackOf = (tags: unknown): string | undefined =>
  (tags as Settings["tags"] | undefined)?.[stackTag];

export const isOfThisStack = ({ tags }: ShownResource): boolean => stackOf(tags) === stackName();
