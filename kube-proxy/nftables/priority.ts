const ofInternet = { raw: -300, mangle: -150, dstnat: -100, filter: 0, security: 50, srcnat: 100 };
const ofBridge = { dstnat: -300, filter: -200, out: 100, srcnat: 300 };

/** `-110`, `dstnat`, `srcnat - 5`, `filter + 10`; null for anything else. */
export function readPriority(text: string, family: string): number | null {
  const parts = /^(?:(-?\d+)|([a-z]+)(?:\s*([+-])\s*(\d+))?)$/.exec(text.trim());
  if (parts === null) return null;
  const [, number, name, sign, offset] = parts;
  if (number !== undefined) return Number(number);
  const names: { readonly [name: string]: number } = family === "bridge" ? ofBridge : ofInternet;
  const base = names[name!];
  if (base === undefined) return null;
  return offset === undefined ? base : base + (sign === "-" ? -1 : 1) * Number(offset);
}

/** `3h`, `1m30s`, `10800s`, `1d2h`, `250ms`, or seconds alone. */
export function readSeconds(text: string): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  const parts = /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/.exec(
    text,
  );
  if (parts === null || text === "") return null;
  const [weeks, days, hours, minutes, seconds, milliseconds] = parts
    .slice(1)
    .map((part) => Number(part ?? 0)) as [number, number, number, number, number, number];
  return (((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds + milliseconds / 1000;
}
