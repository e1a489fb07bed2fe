import { readFileSync } from "node:fs";
import { join } from "node:path";

import { writeInto } from "../../shared/files";
import { messageOf, UserError } from "../../shared/user-error";
import { findService } from "../evaluate/find-service";
import { trace } from "../evaluate/trace";
import type { Access } from "../live/cluster";
import {
  type Answer,
  destination,
  type Destination,
  origin,
  type Packet,
  source,
} from "../model/packet";
import type { NodeDump } from "../model/dump";
import { readDumps } from "../read/read-dumps";
import { svg } from "./svg";
import { coloursFor, title, words } from "./words";

/** The options of `npm run trace`. */
export interface TraceWords extends Access {
  readonly to?: string;
  readonly service?: string;
  readonly batch?: string;
  readonly from: string;
  readonly source?: string;
  readonly json: boolean;
  readonly svg?: string;
  readonly node?: string;
  readonly dump?: string;
}

/** `npm run trace`. */
export async function traceCommand(paths: readonly string[], options: TraceWords): Promise<void> {
  checkTogether(paths, options);
  if (options.dump !== undefined) return await onlyDump(options, options.dump);
  const batch = options.batch === undefined ? null : readBatch(options.batch);
  const to = options.to === undefined ? null : destination(options.to);
  const { dump, serviceNamed } = await nodeOf(paths, options);
  if (batch !== null) return print(batch.map((packet) => json(trace(dump, packet))).join(""));
  const targets = to === null ? await serviceNamed(options.service ?? "") : [to];
  const answers = targets.map((target) => trace(dump, packetTo(target, options)));
  draw(answers, options);
  print(options.json ? json(answers.length === 1 ? answers[0] : answers) : inWords(answers));
}

function checkTogether(paths: readonly string[], options: TraceWords): void {
  const { to, service, batch, node, dump, svg } = options;
  const queries = Object.entries({ to, service, batch }).filter(([, value]) => value !== undefined);
  const named = queries.map(([name]) => `--${name}`).join(" and ");
  const problems: readonly (readonly [boolean, string])[] = [
    [
      dump !== undefined && node === undefined,
      "--dump takes the dumps of a living node: name it with --node",
    ],
    [
      dump !== undefined && queries.length > 0,
      `--dump only takes the dumps: leave out ${named}, and trace the folder afterwards`,
    ],
    [
      dump === undefined && queries.length !== 1,
      `expected one of --to, --service and --batch, got ${named || "none"}; see --help`,
    ],
    [
      svg !== undefined && batch !== undefined,
      "--svg draws one path: give its query with --to instead of --batch",
    ],
    [
      node === undefined && paths.length === 0,
      "expected a folder or files with dumps, or --node of a living cluster, got none; see --help",
    ],
    [
      node !== undefined && paths.length > 0,
      `expected dumps or --node, got both: ${paths.join(", ")} and ${node}`,
    ],
  ];
  const problem = problems.find(([is]) => is);
  if (problem !== undefined) throw new UserError(problem[1], 2);
}

interface Node {
  readonly dump: NodeDump;
  serviceNamed(name: string): Promise<Destination[]>;
}

async function nodeOf(paths: readonly string[], { node, ...access }: TraceWords): Promise<Node> {
  if (node !== undefined) return live().liveNode(node, access);
  const dump = readDumps(paths);
  return { dump, serviceNamed: async (name) => findService(dump, name) };
}

/** Loaded only where it is wanted: reading dumps needs no Kubernetes client. */
const live = () => require("../live/cluster") as typeof import("../live/cluster");

async function onlyDump({ node = "", ...access }: TraceWords, folder: string): Promise<void> {
  const { texts, notes } = await live().dumpNode(node, access, folder);
  for (const note of notes) process.stderr.write(`${note}\n`);
  print(texts.map(({ file }) => `${join(folder, file)}\n`).join(""));
}

const packetTo = (target: Destination, { from, source: address }: TraceWords): Packet => ({
  from: origin(from),
  source: address === undefined ? null : source(address, target),
  ...target,
});

function draw(answers: readonly Answer[], { svg: file }: TraceWords): void {
  if (file === undefined) return;
  const [answer, ...others] = answers;
  if (answer === undefined || others.length > 0) {
    const had = answers.map(({ packet }) => title(packet)).join(", ");
    throw new UserError(`--svg draws one path, got ${answers.length}: ask for one of ${had}`, 2);
  }
  writeInto(file, svg(answer));
}

const inWords = (answers: readonly Answer[]): string =>
  answers
    .map((answer) => words(answer, coloursFor(process.stdout, process.env)))
    .join(`\n${"─".repeat(72)}\n\n`);

const json = (value: unknown): string => `${JSON.stringify(value)}\n`;

const print = (text: string): void => void process.stdout.write(text);

const keys = ["from", "source", "to"];

const example = '{"from":"pod","source":"10.0.0.2","to":"172.30.0.41:80/tcp"}';

/** One query a line; every line is looked at before any is answered. */
export function readBatch(file: string): Packet[] {
  return textOf(file)
    .split("\n")
    .flatMap((line, index) => {
      if (line.trim() === "") return [];
      try {
        return [packet(line)];
      } catch (error) {
        throw new UserError(`${file}: line ${index + 1}: ${messageOf(error)}`, 2);
      }
    });
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UserError(`batch: expected a file of queries, got ${messageOf(error)}`, 2);
  }
}

function packet(line: string): Packet {
  const { from = "pod", source: address = null, to } = query(line);
  const wanted = destination(word("to", to));
  return {
    from: origin(word("from", from)),
    source: address === null ? null : source(word("source", address), wanted),
    ...wanted,
  };
}

function query(line: string): Record<string, unknown> {
  const parsed = parse(line);
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new Error(`expected one query as JSON, such as ${example}, got ${shortened(line)}`);
  }
  const unknown = Object.keys(parsed).find((key) => !keys.includes(key));
  if (unknown !== undefined) {
    throw new Error(
      `expected nothing but ${keys.join(", ")}, such as ${example}, got "${unknown}"`,
    );
  }
  return parsed as Record<string, unknown>;
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function word(key: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw new Error(`${key}: expected text, such as in ${example}, got ${JSON.stringify(value)}`);
}

const shortened = (line: string): string =>
  line.length > 80 ? `${line.trim().slice(0, 80)}…` : line.trim();
