import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { minors } from "../../../../components/versions";
import { testFolder } from "../../../../tests/support/test-folder";
import {
  controllerManager,
  diskDriver,
  diskPlugin,
  nodeManager,
} from "../../../programs/controllers";
import { placesOf } from "../../../programs/installs";
import type { Tool } from "../../../programs/tools";
import { Progress } from "../../../shared/progress";
import { installOwnPrograms, ownProgramsIn, useOwnPrograms } from "../../machines/own-programs";

let cache: string;
let state: string;
beforeEach(() => {
  cache = testFolder();
  state = testFolder();
  useOwnPrograms(state);
});

const placeOf = (tool: Tool): string => placesOf(tool, cache)[tool.name]!;

function put(...tools: readonly Tool[]): void {
  for (const tool of tools) {
    mkdirSync(dirname(placeOf(tool)), { recursive: true });
    writeFileSync(placeOf(tool), "");
  }
}

const cloudProvider = [controllerManager, nodeManager];

/** Paths by the name of the image, of what can be run. */
const found = (programs = ownProgramsIn(state, cache)) =>
  Object.fromEntries(
    Object.entries(programs).flatMap(([image, pathOf]) => {
      const path = pathOf();
      return path === undefined ? [] : [[image, path]];
    }),
  );

it("takes the cloud provider over once both of its programs are in the cache", () => {
  const programs = ownProgramsIn(state, cache);
  put(nodeManager);
  expect(found(programs)).toEqual({});

  put(controllerManager);

  expect(found(programs)).toEqual({
    "azure-cloud-controller-manager": placeOf(controllerManager),
    "azure-cloud-node-manager": placeOf(nodeManager),
  });
});

it("takes the disk driver over once all that its controller needs is there", () => {
  const [last, ...others] = [...diskDriver].reverse() as [Tool, ...Tool[]];
  put(...others);
  expect(found()).toEqual({});

  put(last);

  expect(found()).toEqual({
    "azuredisk-csi": placeOf(diskPlugin),
    ...Object.fromEntries(
      [
        ...["csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"],
        "snapshot-controller",
      ].map((name) => [name, expect.stringMatching(RegExp(`/${name}$`))]),
    ),
  });
});

it("takes nothing over where a rehearsal is not to have it", () => {
  put(...cloudProvider, ...diskDriver);

  expect(ownProgramsIn(cache, cache)).toEqual({});
});

/** What it says where neither a registry answers nor Go is there: nothing but the cache is left. */
async function said(settings: Readonly<Record<string, unknown>>): Promise<string[]> {
  const lines: string[] = [];
  const progress = new Progress({ write: (text: string) => lines.push(text.trimEnd()) });
  const { PATH } = process.env;
  process.env["PATH"] = "";
  const network = jest.spyOn(globalThis, "fetch").mockRejectedValue(new Error("no network"));
  try {
    const { signal } = new AbortController();
    await installOwnPrograms(settings, { progress, signal, cache });
  } finally {
    process.env["PATH"] = PATH;
    network.mockRestore();
  }
  return lines;
}

it("says what a cluster does without, and why", async () => {
  put(nodeManager, ...diskDriver.slice(1));

  expect(await said({})).toEqual([
    "Services get no load balancer until cloud-controller-manager is there",
    expect.stringMatching(/^downloading cloud-controller-manager /),
    expect.stringMatching(/^Services get no load balancer: .* no network; Go is not installed$/),
    "claims get no disk until azurediskplugin is there",
    expect.stringMatching(/^downloading azurediskplugin /),
    expect.stringMatching(
      /^claims get no disk: azurediskplugin .* no network; Go is not installed$/,
    ),
  ]);
});

it("says which versions run, and which an Azure of the same Kubernetes has in their place", async () => {
  put(...cloudProvider, ...diskDriver);
  const own = `v${controllerManager.version}`;
  const runs = `runs Azure's cloud controller manager and node managers ${own} in place of their pods`;

  for (const { minor, cloudProvider: version } of minors) {
    const [line] = await said({ kubernetesVersion: `${minor}.2` });
    expect(line).toBe(version === own ? runs : `${runs}, which on Azure have ${version}`);
  }
  expect((await said({}))[0]).toContain(minors[0].cloudProvider);
});

it("installs nothing that a stack does not use", async () => {
  expect(await said({ cloudProvider: false, diskDriver: "false" })).toEqual([]);
});
