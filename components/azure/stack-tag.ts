import * as pulumi from "@pulumi/pulumi";

import type { Settings } from "../settings/settings";
import type { ShownResource } from "./shown";

/** In a resource group that others use too, what has this tag is a stack's of this program. */
export const stackTag = "zoned-stack";

/** What it says: the stack's whole name, which a backend has once. */
export const stackName = (): string =>
  `${pulumi.getOrganization()}/${pulumi.getProject()}/${pulumi.getStack()}`;

/** The tags of all resources: those of the settings, and in a group that others use too the stack's own. */
export const tagsOf = ({
  resourceGroup,
  tags,
}: Pick<Settings, "resourceGroup" | "tags">): Settings["tags"] =>
  resourceGroup === "" ? tags : { ...tags, [stackTag]: stackName() };

/** Whether this stack has made a resource, by what Azure shows of it. */
export const isOfThisStack = ({ tags }: ShownResource): boolean =>
  (tags as Settings["tags"] | undefined)?.[stackTag] === stackName();
