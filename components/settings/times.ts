/** Whether Kubernetes reads this as a time, such as 90s or 1h30m. */
export const isDuration = (text: string): boolean => /^(\d+(\.\d+)?(h|m|s|ms))+$/.test(text);

/** Of a drain, since an update must end. */
export const mostDrainMinutes = 1440;

/**
 * An ISO 8601 time in its basic format and in UTC, such as 20261123T174128Z: YAML reads it as text
 * and not as a date.
 */
export const compactTime = (time: string | number): string =>
  new Date(time).toISOString().replace(/[-:]|\.\d+/g, "");

/** Milliseconds since 1970; NaN for anything else. */
export function parseCompactTime(text: string): number {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text) ?? [];
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/** Whether nobody is to be asked of the cluster's health, by the setting `skipHealthCheckUntil`. */
export const isHealthCheckSkipped = (
  { skipHealthCheckUntil }: { readonly skipHealthCheckUntil: string },
  now: string,
): boolean => parseCompactTime(skipHealthCheckUntil) > Date.parse(now);
