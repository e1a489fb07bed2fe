import type { Recovery } from "./recover";

/** A recovery in sentences, one a line; none when there was nothing to recover. */
export function summaryOf(recovery: Recovery): string[] {
  const { adopted, forgotten, failed, left, refusal } = recovery;
  const line = (text: string, names: readonly string[]): string[] =>
    names.length === 0 ? [] : [`${text}: ${names.join(", ")}`];
  return [
    ...line("in Azure, and now in the state", adopted),
    ...line("not in Azure, and no longer in the state", forgotten),
    ...line("not finished in Azure, so the next pulumi up updates it", failed),
    ...line("left to the next pulumi up, which makes it or takes it as it is", left),
    ...(refusal === undefined
      ? []
      : [
          "what Azure may have and nobody recorded was not looked for, since pulumi preview is refused:",
          ...refusal.split("\n").map((text) => `  ${text}`),
        ]),
  ];
}
