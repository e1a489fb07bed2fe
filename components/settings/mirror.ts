/** Where machines get packages and images; none of a folder, which serves manifests to this program alone. */
export const machineMirror = (mirror: string): string =>
  /^https?:\/\//i.test(mirror) ? mirror.replace(/\/+$/, "") : "";
