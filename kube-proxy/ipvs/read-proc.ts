/**
 * The kernel's own list, `/proc/net/ip_vs`, which needs no `ipvsadm`. It looks like `ipvsadm -ln`, with
 * numbers in hexadecimal, times in ticks of the kernel's clock, and without the flags of schedulers.
 */
const four = /\b([0-9A-F]{8}):([0-9A-F]{4})(?=\s|$)/;
const six = /\[((?:[0-9a-f]{4}:){7}[0-9a-f]{4})\]:([0-9A-F]{4})(?=\s|$)/;
/** Only ipvsadm shortens addresses so; it may have a long one of IPv6 beside them, with a decimal port. */
const decimal = /\d\.\d+:\d|::/;
const mark = /^FWM {2}(0[0-9A-F]{7}) /;
const persistent = /\bpersistent (\d+) ([0-9A-F]{8})$/;

/** Ticks a second that kernels are built with; the usual one of Debian, Ubuntu and Azure Linux first. */
const clocks = [250, 1000, 300, 100];
/** What sessionAffinity has unless a Service says otherwise. */
const defaultSeconds = 10_800;

export const isOfKernel = (lines: readonly string[]): boolean =>
  lines.some((line) => four.test(line) || six.test(line) || mark.test(line)) &&
  !lines.some((line) => decimal.test(line));

/** How `ipvsadm -ln` would write a line; where clients stay for a time, its ticks stand behind its seconds. */
export const asListed = (line: string): string =>
  line
    .trimEnd()
    .replace(persistent, (_, ticks: string, mask: string) => {
      const time = `${secondsOf(Number(ticks))} ticks ${ticks}`;
      return `persistent ${time} mask ${prefixOf(mask, six.test(line))}`;
    })
    .replace(four, (_, address: string, port: string) => `${dotted(address)}:${parseInt(port, 16)}`)
    .replace(six, (_, address: string, port: string) => `[${address}]:${parseInt(port, 16)}`)
    .replace(mark, (_, number: string) => `FWM  ${parseInt(number, 16)} `);

const secondsOf = (ticks: number): number =>
  clocks.some((clock) => ticks === defaultSeconds * clock)
    ? defaultSeconds
    : ticks / (clocks.find((clock) => ticks % clock === 0) ?? clocks[0]!);

const bytes = (hexadecimal: string): Buffer => Buffer.from(hexadecimal, "hex");

const dotted = (address: string): string => bytes(address).join(".");

/** The kernel turns the bytes of both around: of a mask, which is right, and of IPv6's number of bits. */
const prefixOf = (mask: string, isSix: boolean): number =>
  isSix ? bytes(mask).readUInt32LE() : parseInt(mask, 16).toString(2).replace(/0+$/, "").length;
