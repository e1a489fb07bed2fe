import * as pulumi from "@pulumi/pulumi";

/** @throws RunError with all problems, if there are any */
export function refuse(problems: readonly string[]): void {
  if (problems.length === 0) return;
  throw new pulumi.RunError(
    `stack ${pulumi.getStack()} cannot be deployed:\n  - ${problems.join("\n  - ")}`,
  );
}
