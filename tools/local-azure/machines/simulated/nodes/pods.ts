import type { Body } from "../api";

/** The name of a container's image, without registry and tag. */
export const imageName = ({ image = "" }: Body): string =>
  /([^/:@]+)([:@][^/]*)?$/.exec(image as string)?.[1] ?? "";

/** What a DaemonSet runs on a machine is of that machine. */
export const isOfDaemonSet = ({ metadata }: Body): boolean =>
  (metadata.ownerReferences ?? []).some(({ kind }: Body) => kind === "DaemonSet");
