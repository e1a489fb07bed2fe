import { createHash, randomUUID } from "node:crypto";
import { createReadStream, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";

import { makeFolder, writeWhole } from "../../shared/files";
import { keyOf } from "../arm/resources/resource";

/** A part of a blob, which is a file. */
interface Block {
  readonly id: string;
  readonly size: number;
  readonly file: string;
}

/** A blob that can be read. */
export interface Blob {
  readonly name: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Where its writer has said what its content is. */
  readonly contentType?: string;
  readonly size: number;
  readonly etag: string;
  /** ISO 8601. */
  readonly created: string;
  readonly modified: string;
  readonly blocks: readonly Block[];
}

/** What the folder of a blob says of it, in one file that is never half written. */
interface BlobRecord {
  readonly name: string;
  readonly committed?: Blob;
  readonly uncommitted: readonly Block[];
}

const recordFile = "blob.json";

/** Azure's limit for the blocks of a blob that are not committed. */
const mostUncommitted = 100_000;

/**
 * Block blobs as files. A blob is a folder with a record and a file per block: content is streamed,
 * whatever its size, and a list of blocks is committed by writing the record.
 */
export class BlobStore {
  private readonly turns = new Map<string, Promise<unknown>>();

  constructor(
    private readonly folder: string,
    private readonly now: () => Date,
  ) {}

  find(container: string, name: string): Blob | undefined {
    return readRecord(this.folderOf(container, name))?.committed;
  }

  /** By name, as Azure sorts them. */
  list(container: string): Blob[] {
    const folder = this.containerFolder(container);
    const names = existsSync(folder) ? readdirSync(folder) : [];
    return names
      .flatMap((name) => readRecord(join(folder, name))?.committed ?? [])
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** A block that has the name of another one takes its place. */
  async putBlock(container: string, name: string, id: string, content: Readable): Promise<void> {
    const folder = this.folderOf(container, name);
    await withContent(folder, content, ({ file, size }) =>
      this.change(folder, name, (record) => {
        const others = record.uncommitted.filter((one) => one.id !== id);
        if (others.some((one) => one.id.length !== id.length)) throw invalidBlock();
        if (others.length >= mostUncommitted) throw tooManyBlocks();
        return { ...record, uncommitted: [...others, { id, size, file }] };
      }),
    );
  }

  /**
   * Makes a blob of blocks that were put before, or are in the blob of this name; all others are gone
   * then.
   */
  async putBlockList(
    container: string,
    name: string,
    wanted: readonly string[],
    metadata: Blob["metadata"],
    contentType?: string,
  ): Promise<Blob> {
    const record = await this.change(this.folderOf(container, name), name, (old) => {
      const modified = this.now().toISOString();
      const there = [...old.uncommitted, ...(old.committed?.blocks ?? [])];
      const blocks = wanted.map((id) => {
        const found = there.find((block) => block.id === id);
        if (found === undefined) throw invalidBlockList();
        return found;
      });
      const committed = {
        ...{ name, metadata, contentType, blocks, etag: newEtag() },
        ...{ created: old.committed?.created ?? modified, modified },
        size: blocks.reduce((sum, { size }) => sum + size, 0),
      };
      return { name, committed, uncommitted: [] };
    });
    return record.committed!;
  }

  read({ blocks }: Blob, container: string, name: string): Readable {
    const folder = this.folderOf(container, name);
    return Readable.from(
      (async function* () {
        for (const { file } of blocks) yield* createReadStream(join(folder, file));
      })(),
      { objectMode: false },
    );
  }

  remove(container: string, name: string): void {
    rmSync(this.folderOf(container, name), { recursive: true, force: true });
  }

  removeContainer(container: string): void {
    rmSync(this.containerFolder(container), { recursive: true, force: true });
  }

  /** Changes a record, and then removes what it no longer names. */
  private change(
    folder: string,
    name: string,
    next: (record: BlobRecord) => BlobRecord,
  ): Promise<BlobRecord> {
    return this.inTurn(folder, () => {
      const record = readRecord(folder) ?? { name, uncommitted: [] };
      const named = filesOf(record);
      const changed = next(record);
      writeWhole(join(folder, recordFile), JSON.stringify(changed));
      const kept = new Set(filesOf(changed));
      for (const file of named) if (!kept.has(file)) rmSync(join(folder, file), { force: true });
      return changed;
    });
  }

  /** One change of a blob after the other. */
  private inTurn<T>(folder: string, act: () => T): Promise<T> {
    const turn = (this.turns.get(folder) ?? Promise.resolve()).then(act);
    const done = turn
      .catch(() => undefined)
      .then(() => {
        if (this.turns.get(folder) === done) this.turns.delete(folder);
      });
    this.turns.set(folder, done);
    return turn;
  }

  private containerFolder = (container: string): string =>
    join(this.folder, digestOf(keyOf(container)));

  private folderOf = (container: string, name: string): string =>
    join(this.containerFolder(container), digestOf(name));
}

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex");

const newEtag = (): string => `"0x${randomUUID().replaceAll("-", "").slice(0, 15).toUpperCase()}"`;

const filesOf = ({ committed, uncommitted }: BlobRecord): string[] =>
  [...(committed?.blocks ?? []), ...uncommitted].map(({ file }) => file);

function readRecord(folder: string): BlobRecord | undefined {
  const file = join(folder, recordFile);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as BlobRecord) : undefined;
}

/**
 * Writes content to a file that is on the disk when it is used; none is left of what breaks off or
 * cannot be used.
 */
async function withContent<T>(
  folder: string,
  content: Readable,
  use: (content: Pick<Block, "file" | "size">) => Promise<T>,
): Promise<T> {
  makeFolder(folder);
  const name = `${randomUUID()}.block`;
  const path = join(folder, name);
  let size = 0;
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of content as AsyncIterable<Buffer>) {
      size += chunk.length;
      await file.writeFile(chunk);
    }
    await file.sync();
    return await use({ file: name, size });
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

const invalidBlock = (): BlobError =>
  new BlobError(400, "InvalidBlobOrBlock", "The specified blob or block content is invalid.");

const invalidBlockList = (): BlobError =>
  new BlobError(400, "InvalidBlockList", "The specified block list is invalid.");

const tooManyBlocks = (): BlobError =>
  new BlobError(
    409,
    "BlockCountExceedsLimit",
    "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.",
  );

/** An error of the Blob service: HTTP status, code and message as Azure has them. */
export class BlobError extends Error {
  override readonly name = "BlobError";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Further elements of the body, such as AuthenticationErrorDetail. */
    readonly details: Readonly<Record<string, string>> = {},
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

export const containerNotFound = (): BlobError =>
  new BlobError(404, "ContainerNotFound", "The specified container does not exist.");

export const blobNotFound = (): BlobError =>
  new BlobError(404, "BlobNotFound", "The specified blob does not exist.");

export const invalidHeader = (header: string, value: string): BlobError =>
  new BlobError(
    400,
    "InvalidHeaderValue",
    "The value for one of the HTTP headers is not in the correct format.",
    { HeaderName: header, HeaderValue: value },
  );

export const invalidParameter = (parameter: string, value: string, reason: string): BlobError =>
  new BlobError(
    400,
    "InvalidQueryParameterValue",
    "Value for one of the query parameters specified in the request URI is invalid.",
    { QueryParameterName: parameter, QueryParameterValue: value, Reason: reason },
  );

/** What Azure has, and nothing here asks for. */
export const unsupported = (what: string): BlobError =>
  new BlobError(501, "NotImplemented", `The local Azure's Blob service does not support ${what}.`);
