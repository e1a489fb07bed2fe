import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  chooseControllerManager,
  controllerManagerOf,
} from "../../../../local-azure/machines/cloud-controller-manager";

let state: string;
let path: string;
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), "zoned-manager-"));
  path = ["first", "second"].map((name) => join(state, name)).join(":");
  for (const folder of path.split(":")) mkdirSync(folder);
});
afterEach(() => rmSync(state, { recursive: true }));

const put = (file: string, says: string, mode = 0o755): void =>
  writeFileSync(join(state, file), `#!/bin/sh\n[ "$1" = --version ] && echo '${says}'\n`, { mode });

const choose = () => chooseControllerManager(state, path);

it.each(["azure-cloud-controller-manager", "cloud-controller-manager"])(
  "takes %s from PATH, and says which",
  (name) => {
    put(`second/${name}`, "Cloud Provider Azure v1.36.5");

    expect(choose()).toBe(
      `runs Azure's cloud controller manager v1.36.5 (${join(state, "second", name)}); its node manager is simulated, and claims get no disk`,
    );
    expect(controllerManagerOf(state)).toEqual({
      path: join(state, "second", name),
      version: "v1.36.5",
    });
  },
);

it("passes over another cloud's of the same name", () => {
  put("first/cloud-controller-manager", "Kubernetes v1.36.5");
  put("second/cloud-controller-manager", "Cloud Provider Azure v1.36.5");

  choose();

  expect(controllerManagerOf(state)?.path).toBe(join(state, "second/cloud-controller-manager"));
});

it.each([
  { what: "there is none", put: () => undefined },
  {
    what: "it cannot be run",
    put: () => put("first/cloud-controller-manager", "Cloud Provider Azure v1.36.5", 0o644),
  },
])("says that it simulates one where $what", ({ put }) => {
  put();

  expect(choose()).toBe(
    "simulates Azure's cloud provider for nodes alone, since PATH has no azure-cloud-controller-manager or cloud-controller-manager: Services get no load balancer, claims no disk",
  );
  expect(controllerManagerOf(state)).toBeUndefined();
});

it("simulates one after the program that was chosen is gone", () => {
  put("first/cloud-controller-manager", "Cloud Provider Azure v1.36.5");
  choose();
  rmSync(join(state, "first"), { recursive: true });

  expect(controllerManagerOf(state)).toBeUndefined();
});
