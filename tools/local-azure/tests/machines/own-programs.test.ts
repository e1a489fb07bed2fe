import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chooseOwnPrograms, described, ownPrograms } from "../../machines/own-programs";

let state: string;
let path: string;
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), "zoned-programs-"));
  path = ["first", "second"].map((name) => join(state, name)).join(":");
  for (const folder of path.split(":")) mkdirSync(folder);
});
afterEach(() => rmSync(state, { recursive: true }));

const put = (file: string, says = "", mode = 0o755): void =>
  writeFileSync(join(state, file), `#!/bin/sh\n[ "$1" = --version ] && echo '${says}'\n`, { mode });

const choose = () => {
  chooseOwnPrograms(state, path);
  return described(state);
};

const image = "azure-cloud-controller-manager";

it.each(["azure-cloud-controller-manager", "cloud-controller-manager"])(
  "takes %s from PATH, and says which",
  (name) => {
    put(`second/${name}`, "Cloud Provider Azure v1.36.5");

    expect(choose()[0]).toBe(
      `runs Azure's cloud controller manager v1.36.5 (${join(state, "second", name)}); its node manager is simulated`,
    );
    expect(ownPrograms(state)).toEqual({ [image]: join(state, "second", name) });
  },
);

it("passes over another cloud's of the same name", () => {
  put("first/cloud-controller-manager", "Kubernetes v1.36.5");
  put("second/cloud-controller-manager", "Cloud Provider Azure v1.36.5");

  choose();

  expect(ownPrograms(state)[image]).toBe(join(state, "second/cloud-controller-manager"));
});

it.each([
  { what: "there is none", put: () => undefined },
  {
    what: "it cannot be run",
    put: () => put("first/cloud-controller-manager", "Cloud Provider Azure v1.36.5", 0o644),
  },
])("says that it simulates one where $what", ({ put }) => {
  put();

  expect(choose()[0]).toBe(
    "simulates Azure's cloud provider for nodes alone, since PATH has no azure-cloud-controller-manager or cloud-controller-manager: Services get no load balancer",
  );
  expect(ownPrograms(state)).toEqual({});
});

const sidecars = ["csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"];
const putDriver = (): void => {
  put("second/azurediskplugin", "Driver Name: disk.csi.azure.com\nDriver Version: v1.34.5");
  for (const name of [...sidecars, "snapshot-controller"]) put(`first/${name}`);
};

it("takes the disk driver from PATH where all that its controller needs is there", () => {
  putDriver();

  expect(choose()[1]).toBe(
    `runs Azure's disk driver v1.34.5 (${state}/second/azurediskplugin) in place of its controller's pods; on nodes it is simulated`,
  );
  expect(ownPrograms(state)).toEqual({
    "azuredisk-csi": `${state}/second/azurediskplugin`,
    ...Object.fromEntries(
      [...sidecars, "snapshot-controller"].map((name) => [name, `${state}/first/${name}`]),
    ),
  });
});

it("says what of the disk driver PATH lacks, and runs nothing of it", () => {
  putDriver();
  for (const name of ["csi-resizer", "csi-attacher"]) rmSync(join(state, "first", name));

  expect(choose()[1]).toBe("claims get no disk, since PATH has no csi-attacher, csi-resizer");
  expect(ownPrograms(state)).toEqual({});
});

it("runs nothing of what is gone after it was chosen", () => {
  put("first/cloud-controller-manager", "Cloud Provider Azure v1.36.5");
  putDriver();
  choose();
  rmSync(join(state, "first"), { recursive: true });

  expect(ownPrograms(state)).toEqual({});
});
