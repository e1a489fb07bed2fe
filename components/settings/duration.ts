/** Whether Kubernetes reads this as a time, such as 90s or 1h30m. */
export const isDuration = (text: string): boolean => /^(\d+(\.\d+)?(h|m|s|ms))+$/.test(text);
