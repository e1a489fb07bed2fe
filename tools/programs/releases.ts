import { versions } from "../../components/versions";
import { UserError } from "../shared/user-error";
import { pinned } from "./pinned";

/** A Kubernetes version that can be built here, and the sources of it and of what it runs on. */
export interface Release {
  readonly version: string;
  /** Folder of these sources below `tools/programs/modules`, as a path's beginning. */
  readonly sources: "" | "1.36/";
}

export const current: Release = { version: versions.kubernetes, sources: "" };

const [major, minor, patch] = versions.kubernetes.split(".").map(Number);

/**
 * The sources of the current version under the next patch's number, so that an upgrade to a patch can
 * be tried before there is one. Only for tests on real machines.
 */
export const nextPatch: Release = { version: `${major}.${minor}.${patch! + 1}`, sources: "" };

/** The minor that an upgrade to this one comes from. */
export const previousMinor: Release = {
  version: pinned("1.36/kubernetes", "k8s.io/kubernetes"),
  sources: "1.36/",
};

export const releases: readonly Release[] = [current, nextPatch, previousMinor];

/** @throws UserError when a version cannot be built here */
export function releaseOf(version: string): Release {
  const found = releases.find((one) => one.version === version);
  if (found) return found;
  throw new UserError(
    `Kubernetes ${version} is not among the versions that can be built here: ` +
      `${releases.map((one) => one.version).join(", ")} (tools/programs/releases.ts)`,
  );
}
