import { isIP } from "node:net";

import { DumpProblem, type IpSet, type IpSets } from "../model/dump";

interface Draft extends IpSet {
  readonly members: string[];
}

/** `ipset save` or `ipset list`. */
export function parse(text: string, file: string, firstLine: number): IpSets {
  const sets = new Map<string, Draft>();
  const begin = (name: string, type: string, family: 4 | 6, line: number): Draft => {
    const before = sets.get(name);
    if (before !== undefined && (before.type !== type || before.family !== family)) {
      throw new DumpProblem(file, line, `set ${name} once`, "it again with another type");
    }
    // A set pasted twice says nothing new: the later one counts.
    const set = { name, type, family, members: [] };
    sets.set(name, set);
    return set;
  };
  if (/^Name: /m.test(text)) readList(text, file, firstLine, begin);
  else readSave(text, file, firstLine, sets, begin);
  return { file, sets };
}

type Begin = (name: string, type: string, family: 4 | 6, line: number) => Draft;

function readSave(
  text: string,
  file: string,
  firstLine: number,
  sets: Map<string, Draft>,
  begin: Begin,
): void {
  text.split("\n").forEach((raw, index) => {
    const line = raw.trim();
    const at = firstLine + index;
    if (line === "" || line.startsWith("#")) return;
    const [verb, name, type, ...options] = line.split(/\s+/);
    if (name === undefined || type === undefined) {
      throw new DumpProblem(
        file,
        at,
        "`create NAME TYPE …` or `add NAME MEMBER`",
        line,
        "the dump is cut off: take it again",
      );
    }
    if (verb === "create") {
      begin(name, type, options[options.indexOf("family") + 1] === "inet6" ? 6 : 4, at);
    } else if (verb === "add") {
      const set = sets.get(name);
      if (set === undefined)
        throw new DumpProblem(file, at, `\`create ${name}\` before its members`, line);
      checkMember(set, type, file, at);
      set.members.push([type, ...options].join(" "));
    } else {
      throw new DumpProblem(file, at, "a line of `ipset save`", line);
    }
  });
}

/** ipset prints addresses, never names: anything else was mistyped or cut off. */
function checkMember(set: Draft, member: string, file: string, line: number): void {
  const parts = member.split(",");
  set.type
    .slice(set.type.indexOf(":") + 1)
    .split(",")
    .forEach((kind, at) => {
      if (kind !== "ip" && kind !== "net") return;
      const ends = (parts[at] ?? "").split("/")[0]!.split("-");
      if (!ends.every((address) => isIP(address) > 0)) {
        throw new DumpProblem(
          file,
          line,
          `a member of set ${set.name}, of type ${set.type}`,
          member,
        );
      }
    });
}

function readList(text: string, file: string, firstLine: number, begin: Begin): void {
  let name = "";
  let type = "";
  let entries: number | null = null;
  let set: Draft | null = null;
  let count = 0;
  let nameLine = firstLine;
  const finish = (): void => {
    if (name === "") return;
    const fix = "the dump is cut off: take it again";
    if (set === null) throw new DumpProblem(file, nameLine, `the members of set ${name}`, "", fix);
    if (entries !== null && count < entries) {
      throw new DumpProblem(file, nameLine, `${entries} members of set ${name}`, `${count}`, fix);
    }
  };
  text.split("\n").forEach((raw, index) => {
    const line = raw.trim();
    const at = firstLine + index;
    if (line === "") return;
    const field =
      /^(Name|Type|Revision|Header|Size in memory|References|Number of entries|Members|Default|Timeout|Comment):\s*(.*)$/.exec(
        line,
      );
    if (field === null) {
      if (set === null) throw new DumpProblem(file, at, "`Name:` and `Type:` before members", line);
      checkMember(set, line.split(" ")[0]!, file, at);
      set.members.push(line);
      count += 1;
      return;
    }
    const [, key, value] = field as unknown as [string, string, string];
    if (key === "Name") {
      finish();
      [name, type, entries, set, count, nameLine] = [value, "", null, null, 0, at];
    } else if (key === "Type") type = value;
    else if (key === "Number of entries") entries = Number(value);
    else if (key === "Header") set = begin(name, type, /family inet6/.test(value) ? 6 : 4, at);
    else if (key === "Members") set ??= begin(name, type, 4, at);
  });
  finish();
}
