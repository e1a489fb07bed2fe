import { listOf } from "../../blobs/list";
import type { Blob } from "../../blobs/store";

const named = (name: string): Blob => ({
  name,
  size: 1,
  etag: '"0x1"',
  created: "2026-11-25T09:00:00Z",
  modified: "2026-11-25T09:00:00Z",
  metadata: {},
  blocks: [],
});

it("has 5,000 blobs on a page at most, however many are asked for", () => {
  const blobs = Array.from({ length: 5001 }, (_, index) => named(`${index}`.padStart(5, "0")));
  const at = { endpoint: "https://ours.blob.core.windows.net/", container: "etcd" };

  for (const query of ["", "maxresults=6000"]) {
    const page = listOf(blobs, new URLSearchParams(query), at);
    expect(page.match(/<Blob>/g)).toHaveLength(5000);
    const [, marker = ""] = /<NextMarker>(.+)<\/NextMarker>/.exec(page) ?? [];
    const rest = listOf(blobs, new URLSearchParams({ marker }), at);
    expect(rest.match(/<Name>\d+<\/Name>/g)).toEqual(["<Name>05000</Name>"]);
  }
});
