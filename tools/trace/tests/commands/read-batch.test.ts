import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { readBatch } from "../../commands/read-batch";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zoned-batch-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function read(text: string) {
  const file = join(folder, "queries.json");
  writeFileSync(file, text);
  return readBatch(file);
}

it("reads a query a line, with pod as the usual origin", () => {
  const batch = `{"to":"10.96.0.10:53/udp"}

{"from":"outside","source":"2001:db8::7","to":"[fd00::a]:80"}
{"from":"node","source":null,"to":"10.96.0.10:53"}
`;

  expect(read(batch)).toEqual([
    { from: "pod", source: null, destination: "10.96.0.10", port: 53, protocol: "udp" },
    { from: "outside", source: "2001:db8::7", destination: "fd00::a", port: 80, protocol: "tcp" },
    { from: "node", source: null, destination: "10.96.0.10", port: 53, protocol: "tcp" },
  ]);
});

it.each([
  ['{"to":"10.96.0.10:53"', "expected one query as JSON"],
  ['["10.96.0.10:53"]', "expected one query as JSON"],
  ['{"to":"10.96.0.10:53","form":"pod"}', 'got "form"'],
  ["{}", "to: expected text"],
  ['{"to":"10.96.0.10:53","from":"moon"}', "one of pod, node, outside"],
  ['{"to":"10.96.0.10:53","source":7}', "source: expected text"],
  ['{"to":"[fd00::a]:80","source":"10.0.0.1"}', "an IPv6 address"],
])("names the line of a bad query: %s", (line, expected) => {
  const batch = `{"to":"10.96.0.10:53"}\n${line}\n`;

  expect(() => read(batch)).toThrow("queries.json: line 2: ");
  expect(() => read(batch)).toThrow(expected);
});

it("says that there is no such file", () => {
  expect(() => readBatch(join(folder, "gone"))).toThrow(
    /^batch: expected a file of queries, got .*gone/,
  );
});
