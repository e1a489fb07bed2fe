/** Azure compares ids without regard to case. */
export const sameId = (one: string | undefined, other: string | undefined): boolean =>
  one !== undefined && one.toLowerCase() === other?.toLowerCase();

/** The resource that a reference is to. */
export const referred = <T extends { readonly id: string }>(
  resources: readonly T[],
  reference: { readonly id: string } | undefined,
): T | undefined => resources.find(({ id }) => sameId(id, reference?.id));
