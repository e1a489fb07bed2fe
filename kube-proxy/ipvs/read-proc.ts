/**
 * The kernel's own list, `/proc/net/ip_vs`, which needs no `ipvsadm`. It looks like `ipvsadm -ln`, with
 * numbers in hexadecimal, times in ticks of the kernel's clock, and without the flags of schedulers.
 */
const four = /\b([0-9A-F]{8}):([0-9A-F]{4})(?=\s|$)/;
const six = /\[((?:[0-9a-f]{4}:){7}[0-9a-f]{4})\]:([0-9A-F]{4})(?=\s|$)/;
const mark = /^FWM {2}(0[0-9A-F]{7}) /;
const persistent = /\bpersistent \d+ ([0-9A-F]{8})$/;

export const isOfKernel = (lines: readonly string[]): boolean =>
  lines.some((line) => four.test(line) || six.test(line) || mark.test(line));

/** How `ipvsadm -ln` would write a line, but for the time that clients stay, which is a question mark. */
export const asListed = (line: string): string =>
  line
    .trimEnd()
    .replace(persistent, (_, mask: string) => `persistent ? mask ${prefixOf(mask, six.test(line))}`)
    .replace(four, (_, address: string, port: string) => `${dotted(address)}:${parseInt(port, 16)}`)
    .replace(six, (_, address: string, port: string) => `[${address}]:${parseInt(port, 16)}`)
    .replace(mark, (_, number: string) => `FWM  ${parseInt(number, 16)} `);

const bytes = (hexadecimal: string): Buffer => Buffer.from(hexadecimal, "hex");

const dotted = (address: string): string => bytes(address).join(".");

/** The kernel turns the bytes of both around: of a mask, which is right, and of IPv6's number of bits. */
const prefixOf = (mask: string, isSix: boolean): number =>
  isSix ? bytes(mask).readUInt32LE() : parseInt(mask, 16).toString(2).replace(/0+$/, "").length;
