import { combine } from "./iptables/combine";
import { isOfKernel } from "./ipvs/read-proc";
import { mergeInterfaces, mergeTables } from "./merge";
import type { NodeDump } from "./node-dump";
import type { Recognised } from "./recognise";
import { unite, type Part } from "./unite";

type Of<K extends Recognised["kind"]> = Extract<Recognised, { kind: K }>;

/** All that was recognised, as what one node has. */
export function assemble(recognised: readonly Recognised[], remarks: readonly string[]): NodeDump {
  const notes = new Set(remarks);
  const note = (sentence: string): void => void notes.add(sentence);
  const all = <K extends Recognised["kind"]>(kind: K): Of<K>[] =>
    recognised.filter((each): each is Of<K> => each.kind === kind);
  const iptables = all("iptables").flatMap(({ said }) => said);
  return {
    iptables4: combine(iptables.filter(({ family }) => family === 4)),
    iptables6: combine(iptables.filter(({ family }) => family === 6)),
    ipsets: joined(all("ipset"), (dumps) => ({
      sets: unite(
        "set",
        parts(dumps, has(/^create /m), ({ sets }) => sets),
        note,
      ),
    })),
    ipvs: joined(all("ipvs"), (dumps) => ({
      servers: unite(
        "virtual server",
        parts(dumps, ofIpvs, ({ servers }) => servers),
        note,
      ),
    })),
    nftables: joined(all("nftables"), (dumps) => ({
      format: dumps[0].said.format,
      tables: unite(
        "table",
        parts(dumps, has(/^\s*\{/), ({ tables }) => tables),
        note,
        mergeTables,
      ),
    })),
    addresses: joined(all("addresses"), (dumps) => ({
      interfaces: [
        ...unite(
          "interface",
          parts(dumps, has(/^\s*\[/), ({ interfaces }) => byName(interfaces)),
          note,
          mergeInterfaces,
        ).values(),
      ],
    })),
    notes: [...notes],
  };
}

type Some<T> = readonly [T, ...T[]];

/** One value of several of its kind, under the name of the first file; null of none. */
function joined<R extends Recognised, T extends object>(
  dumps: readonly R[],
  join: (dumps: Some<R>) => T,
): (T & { file: string }) | null {
  const [first, ...others] = dumps;
  return first === undefined ? null : { file: first.file, ...join([first, ...others]) };
}

/** What a section has in it that is the more exact of the two ways to print its kind. */
const has =
  (exact: RegExp) =>
  (text: string): number =>
    exact.test(text) ? 1 : 0;

/** `ipvsadm -Sn` before `-ln` before the kernel's own list. */
const ofIpvs = (text: string): number =>
  /^-A /m.test(text) ? 2 : isOfKernel(text.split("\n")) ? 0 : 1;

const parts = <R extends Recognised, T>(
  dumps: readonly R[],
  exactness: (text: string) => number,
  things: (said: R["said"]) => ReadonlyMap<string, T>,
): Part<T>[] =>
  dumps.map(({ file, section, said }) => ({
    file,
    line: section.firstLine,
    exactness: exactness(section.text),
    things: things(said),
  }));

const byName = <T extends { readonly name: string }>(things: readonly T[]): Map<string, T> =>
  new Map(things.map((thing) => [thing.name, thing]));
