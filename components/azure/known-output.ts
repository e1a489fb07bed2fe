import * as pulumi from "@pulumi/pulumi";

/**
 * An output that Azure fills in once and keeps as long as the resource lives. A preview knows no
 * output of a resource that changes in any way, and would show everything as changed or replaced
 * that is made of it; what Azure has now is what it will be.
 *
 * What depends on the resource does so in a preview too, and is replaced with it.
 *
 * @param now what Azure shows; undefined where the resource is yet to be made, or made anew
 */
export const knownOutput = (
  output: pulumi.Output<string>,
  owner: pulumi.Resource,
  now: string | undefined,
): pulumi.Output<string> =>
  now !== undefined && pulumi.runtime.isDryRun() ? owner.urn.apply(() => now) : output;
