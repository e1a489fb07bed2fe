/** `0x4000/0x4000`, `0x1`, `16384`: a value and the bits that it is about. */
export function valueAndMask(text: string): { value: number; mask: number } {
  const [value, mask] = text.split("/");
  return { value: Number(value) >>> 0, mask: mask === undefined ? 0xffffffff : Number(mask) >>> 0 };
}

export function markMatch(mark: number, text: string): boolean {
  const { value, mask } = valueAndMask(text);
  return (mark & mask) >>> 0 === value;
}

/** What MARK and CONNMARK make of a mark: the masked bits are cleared, then the value is put in. */
export function setMark(mark: number, option: string, text: string): number {
  const { value, mask } = valueAndMask(text);
  switch (option) {
    case "--set-xmark":
      return (((mark & ~mask) >>> 0) ^ value) >>> 0;
    case "--set-mark":
      return (((mark & ~mask) >>> 0) | value) >>> 0;
    case "--or-mark":
      return (mark | value) >>> 0;
    case "--and-mark":
      return (mark & value) >>> 0;
    case "--xor-mark":
      return (mark ^ value) >>> 0;
    default:
      return mark;
  }
}

export function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
