import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";

import { RunError } from "@pulumi/pulumi";

import { findManifests } from "../../components/add-ons/manifests/manifests";
import { type Manifest, manifests } from "../../components/versions";
import { writeWhole } from "../shared/files";
import type { Missing, Item } from "./sources";
import { type ManifestText, without } from "./images/wanted-images";

const parts = [
  { part: "Canal", list: manifests.canal },
  { part: "disk driver", list: manifests.diskDriver },
] as const;

export interface Manifests {
  readonly texts: readonly ManifestText[];
  readonly items: readonly Item[];
  readonly missing: readonly Missing[];
}

/** Upstream's manifests below `folder`, each checked against the SHA-256 that the program pins. */
export async function fetchManifests(folder: string, signal: AbortSignal): Promise<Manifests> {
  const all = await Promise.all(
    parts.map(async ({ part, list }) => {
      const texts = await textsOf(list);
      signal.throwIfAborted();
      if (!texts) {
        const why = `${list.length === 1 ? list[0].path : `${list.length} manifests`} cannot be fetched here`;
        return { missing: { what: part, why, without: without[part] } };
      }
      for (const [path, text] of texts) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeWhole(join(folder, path), text);
      }
      return { part, texts };
    }),
  );
  const found = all.flatMap(({ part, texts }) => (texts ? [{ part, texts }] : []));
  return {
    texts: found.flatMap(({ part, texts }) => [...texts.values()].map((text) => ({ part, text }))),
    items: found.flatMap(({ texts }) =>
      [...texts.keys()].map((path) => ({ what: path, from: "upstream's, by its SHA-256" })),
    ),
    missing: all.flatMap(({ missing }) => missing ?? []),
  };
}

async function textsOf(list: readonly Manifest[]): Promise<Map<string, string> | undefined> {
  try {
    return await findManifests(list, { mirror: "" });
  } catch (error) {
    if (RunError.isInstance(error)) return undefined;
    throw error;
  }
}
