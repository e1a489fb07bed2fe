import { mkdtempSync, rmSync } from "node:fs";
import { get as getPlain, type IncomingMessage } from "node:http";
import { get as getSecure } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { certificateIn } from "../../../arm/rest/certificate";
import { serveBoth } from "../../../arm/rest/listener";

it("keeps idle connections longer than clients pause, by HTTP and by HTTPS", async () => {
  const folder = mkdtempSync(join(tmpdir(), "zoned-listener-"));
  const certificate = await certificateIn(folder);
  rmSync(folder, { recursive: true });
  const { port, close } = await serveBoth(
    0,
    async (_, response) => void response.end(),
    certificate,
  );
  const headers = { connection: "keep-alive" };
  const answers = await Promise.all(
    [
      (done: (answer: IncomingMessage) => void) => getPlain({ port, headers }, done),
      (done: (answer: IncomingMessage) => void) =>
        getSecure({ port, headers, ca: certificate.authority }, done),
    ].map(
      (ask) => new Promise<IncomingMessage>((resolve, reject) => ask(resolve).on("error", reject)),
    ),
  );
  await close();

  const seconds = answers.map(
    (answer) => /timeout=(\d+)/.exec(answer.headers["keep-alive"] as string)?.[1],
  );
  expect(seconds).toEqual(["120", "120"]);
});
