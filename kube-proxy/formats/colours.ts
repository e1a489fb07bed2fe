/** What words look like; plain where no terminal reads them. */
export interface Colours {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly open: (text: string) => string;
}

const itself = (text: string): string => text;

export const plain: Colours = {
  bold: itself,
  dim: itself,
  good: itself,
  bad: itself,
  open: itself,
};

const escape =
  (code: number) =>
  (text: string): string =>
    `\u001b[${code}m${text}\u001b[0m`;

const coloured: Colours = {
  bold: escape(1),
  dim: escape(2),
  good: escape(32),
  bad: escape(31),
  open: escape(33),
};

/** Colours on a terminal that has them, unless NO_COLOR asks for none (https://no-color.org). */
export function coloursFor(
  stream: { readonly isTTY?: boolean },
  { NO_COLOR, TERM }: Readonly<Record<string, string | undefined>>,
): Colours {
  return stream.isTTY === true && !NO_COLOR && TERM !== "dumb" ? coloured : plain;
}
