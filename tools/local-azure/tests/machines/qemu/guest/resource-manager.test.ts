import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { leadToResourceManager } from "../../../../machines/qemu/guest/resource-manager";

test("a machine finds Resource Manager at its own loopback, on the host's port, and trusts its authority", async () => {
  const folder = mkdtempSync(join(tmpdir(), "zoned-authority-"));
  const authority = join(folder, "azure-ca.crt");
  writeFileSync(authority, "the authority");
  const files: Record<string, string> = {};
  const ran: string[][] = [];
  const agent = {
    write: async (path: string, text: string) => void (files[path] = text),
    run: async (...command: string[]) => {
      ran.push(command);
      return { exitCode: 0, stdout: "" };
    },
  };

  await leadToResourceManager(agent, 4711, authority);

  rmSync(folder, { recursive: true });
  expect(files["/etc/ssl/certs/local-azure.pem"]).toBe("the authority");
  expect(files["/etc/systemd/system/local-azure.socket"]).toContain("ListenStream=127.0.0.1:4711");
  expect(files["/etc/systemd/system/local-azure.service"]).toContain(
    "socket-proxyd 198.18.3.1:443",
  );
  expect(ran).toEqual([["/usr/bin/systemctl", "enable", "--now", "local-azure.socket"]]);
});
