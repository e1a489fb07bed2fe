import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { certificateIn } from "../../../arm/rest/certificate";

it("is valid for every name by which clients reach the local Azure, from one authority at every start", async () => {
  const folder = mkdtempSync(join(tmpdir(), "zoned-certificate-"));
  const [first, second] = [await certificateIn(folder), await certificateIn(folder)];
  rmSync(folder, { recursive: true });

  expect(second.authority).toBe(first.authority);
  const authority = new X509Certificate(first.authority);
  for (const { cert } of [first, second]) {
    const certificate = new X509Certificate(cert);
    expect(certificate.verify(authority.publicKey)).toBe(true);
    expect(certificate.checkIP("127.0.0.1")).toBe("127.0.0.1");
    for (const host of ["localhost", "ours.blob.core.windows.net"]) {
      expect([host, certificate.checkHost(host) !== undefined]).toEqual([host, true]);
    }
  }
});
