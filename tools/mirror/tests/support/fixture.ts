import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { ImageBuilder } from "../../images/build-image";
import { ImageLayout } from "../../images/image-layout";
import { Sources } from "../../sources";

/** Official sources of which those answer whose address matches. */
export const answering = (there: RegExp): Sources =>
  Object.assign(new Sources(new AbortController().signal), {
    answers: async (url: string) => there.test(url),
  });

/** Makes an image of one executable with this content in a mirror's folder. */
export async function smallImage(mirror: string, name: string, content: string): Promise<void> {
  const program = join(mirror, "program");
  mkdirSync(mirror, { recursive: true });
  writeFileSync(program, content, { mode: 0o755 });
  const layout = new ImageLayout(join(mirror, "images"));
  const sources = {
    pathOf: async () => program,
    debianPackages: async () => [],
    signal: new AbortController().signal,
  };
  const builder = new ImageBuilder(layout, sources, join(mirror, "drafts"));
  const layers = [{ kind: "binaries" as const, binaries: { "/bin/program": "program" } }];
  const image = await builder.build({ layers, entrypoint: ["/bin/program"] });
  layout.name(name, image, "a test");
}
