import type { Inputs } from "./deployment";

/** How the engine marks a secret in its state. */
const secretMark = "4dabf18193072939515e22adb298388d";

const isMap = (value: unknown): value is Inputs =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The inputs to record for a resource that was created as `sent` and then read as `shown`.
 *
 * What Azure never shows, such as customData and protected settings, is as it was sent. Of what it
 * does show, only what was asked for counts: the rest are its defaults, which the next update would
 * take for changes.
 */
export function inputsOf(sent: Inputs, shown: Inputs): Inputs {
  return Object.fromEntries(
    Object.entries(sent).map(([key, value]) => [
      key,
      key in shown ? seen(value, shown[key]) : value,
    ]),
  );
}

function seen(sent: unknown, shown: unknown): unknown {
  if (isMap(sent) && secretMark in sent) return sent;
  if (isMap(sent) && isMap(shown)) return inputsOf(sent, shown);
  if (Array.isArray(sent) && Array.isArray(shown) && sent.length === shown.length) {
    return sent.map((part, index) => seen(part, shown[index]));
  }
  // A list that Azure shows as a map cannot be compared.
  return isMap(sent) === isMap(shown) ? shown : sent;
}
