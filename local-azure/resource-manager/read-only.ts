import { Body, ResourceType } from "./resource-type";

/** A body without what only Azure writes inside of it, as traces of others on a part. */
export function withoutReadOnly<B extends Body>({ readOnly = [] }: ResourceType, body: B): B {
  return readOnly.reduce<unknown>((value, path) => without(value, path.split(".")), body) as B;
}

function without(value: unknown, [step, ...rest]: readonly string[]): unknown {
  if (step === undefined || typeof value !== "object" || value === null) return value;
  const key = step.replace(/\[\]$/, "");
  const inner = (value as Body)[key];
  if (inner === undefined) return value;
  if (rest.length === 0) {
    const { [key]: _, ...others } = value as Body;
    return others;
  }
  const changed =
    step.endsWith("[]") && Array.isArray(inner)
      ? inner.map((element: unknown) => without(element, rest))
      : without(inner, rest);
  return { ...value, [key]: changed };
}
