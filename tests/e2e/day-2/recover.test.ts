import { execFile } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { versions } from "../../../components/versions";
import type { LoggedRequest } from "../../../tools/local-azure/arm/requests";
import {
  attachedEnvironment,
  type Attachment,
  endpointOf,
  runningDaemon,
} from "../../../tools/local-azure/daemon/attachment";
import { endDaemon, ensureDaemon } from "../../../tools/local-azure/daemon/daemon-client";
import { passphraseOf } from "../../../tools/local-azure/rehearsal/settings";
import { Rehearsal, type Run } from "../../../tools/local-azure/rehearsal/rehearsal";
import { takeFolder } from "../../../tools/local-azure/rehearsal/state-folder";
import { checkout, loadTypeScript } from "../../../tools/shared/checkout";
import { Progress } from "../../../tools/shared/progress";
import { environmentOf } from "../../../tools/pulumi/pulumi";
import { listen } from "../../support/listen";
import { testFolder } from "../../support/test-folder";
import { refused, succeeded, unchanged } from "../../../tools/lab/local-cloud";

/** Nothing but Azure's resources is of interest here, so the add-ons are the smallest. */
const small = { cni: "flannel", diskDriver: false, storageClasses: false };

let state: string;
let azure: Attachment;

/** A local Azure for one life of a stack; its tests go on where the one before ended. */
function aLocalAzure(): void {
  beforeAll(async () => {
    state = takeFolder(testFolder());
    await startAzure();
  });
  afterAll(() => endDaemon(state));
}

const binaries = () => process.env["ZONED_BINARIES"]!;

async function startAzure(): Promise<void> {
  const signal = new AbortController().signal;
  azure = await ensureDaemon({ state, binaries: binaries() }, new Progress(), signal);
}

/** As `npm start` opens a stack, with what it recovers. */
const open = (stack: string, settings: Record<string, unknown>, to = azure) =>
  Rehearsal.open({ state, stack, settings, azure: to, binaries: binaries() });

/** The local Azure, by a way to its azure-native that can be cut. */
async function byCable(): Promise<{ far: Attachment; cut: () => void }> {
  const ends: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(azure.ports.azureNative, "127.0.0.1");
    for (const end of [near, far]) ends.push(end.on("error", () => undefined));
    near.pipe(far).pipe(near);
  });
  const azureNative = await listen(server);
  return {
    far: { ...azure, ports: { ...azure.ports, azureNative } },
    cut: () => {
      server.close();
      for (const end of ends) end.destroy();
    },
  };
}

async function ask(method: string, path: string, body?: unknown): Promise<Response> {
  return fetch(`${endpointOf(azure.ports)}${path}`, {
    method,
    headers: { authorization: "Bearer test", "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
}

/** Lets the creation of these types take so many seconds, and nothing else any time. */
async function takingTime(seconds: Record<string, number>): Promise<void> {
  const times = Object.entries(seconds).map(([type, create]) => [type, { create: create * 1e6 }]);
  await ask("PUT", "/local/durations", { factor: 1e-6, seconds: Object.fromEntries(times) });
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(50);
}

const requests = async () =>
  (await (await ask("GET", "/local/requests")).json()) as LoggedRequest[];

const inCloud = (): { id: string; type: string; body: { provisioningState?: string } }[] => {
  const { resources } = JSON.parse(readFileSync(join(state, "resources.json"), "utf8"));
  return resources;
};

const isBeingCreated = (pattern: RegExp) =>
  inCloud().some(
    ({ id, body }) =>
      pattern.test(id) && /^(Creating|Updating)$/.test(body.provisioningState ?? ""),
  );

/**
 * Kills a process and all that it started, as nothing but the kernel's out-of-memory killer does.
 */
function killTree(pid: number): void {
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1];
      if (Number(parent) === pid) killTree(Number(name));
    } catch {
      // It has ended since.
    }
  }
  process.kill(pid, "SIGKILL");
}

function killEngine(stack: string): void {
  const locks = join(state, "backend", ".pulumi", "locks", "organization", "zoned", stack);
  const [lock] = readdirSync(locks).filter((name) => name.endsWith(".json"));
  killTree((JSON.parse(readFileSync(join(locks, lock!), "utf8")) as { pid: number }).pid);
}

async function killAzure(): Promise<void> {
  process.kill(runningDaemon(state)!.pid, "SIGKILL");
  await until(async () => runningDaemon(state) === undefined);
}

interface Exported {
  deployment: {
    resources: { urn: string; id?: string; type: string; outputs?: object }[];
    pending_operations?: unknown[];
  };
}

const isInAzure = (type: string): boolean => type.startsWith("azure-native:");

/** Ids by which the state knows something in Azure, and those that Azure has; both sorted. */
async function ids(stack: Rehearsal): Promise<{ known: string[]; inAzure: string[] }> {
  const { deployment } = (await stack.stackExport()) as Exported;
  expect(deployment.pending_operations ?? []).toEqual([]);
  const known = deployment.resources.filter(({ type }) => isInAzure(type));
  return {
    known: known.map(({ id }) => id!.toLowerCase()).sort(),
    inAzure: inCloud()
      // Disks come with their machines.
      .filter(({ type }) => !/\/disks$/i.test(type))
      .map(({ id }) => id.toLowerCase())
      .sort(),
  };
}

async function agrees(stack: Rehearsal): Promise<void> {
  const { known, inAzure } = await ids(stack);
  expect(known).toEqual(inAzure);
}

/** What the state knows by its id alone. */
async function unread(stack: Rehearsal): Promise<string[]> {
  const { deployment } = (await stack.stackExport()) as Exported;
  return deployment.resources
    .filter(({ type, outputs = {} }) => isInAzure(type) && Object.keys(outputs).length === 0)
    .map(({ urn }) => urn);
}

/** `npm run recover` as somebody runs it whose pulumi, backend and Azure are these. */
async function recoverCommand(stack: Rehearsal, name: string, ...flags: string[]) {
  const passphrase = passphraseOf(state);
  const env = environmentOf({
    state,
    binaries: binaries(),
    program: checkout,
    passphrase,
    environment: attachedEnvironment(azure, []),
  });
  const path = [binaries(), dirname(process.execPath), process.env["PATH"]].join(delimiter);
  const words = [...loadTypeScript, "tools/cli/recover.ts", "recover"];
  const options = ["--stack", name, "--config-file", stack.place.config];
  const copies = ["--copies", join(state, "copies")];
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...words, ...options, ...copies, ...flags],
    { cwd: checkout, env: { ...env, PATH: path }, maxBuffer: 64e6 },
  );
  return stdout;
}

describe("a first update that is struck again and again", () => {
  aLocalAzure();
  let stack: Rehearsal;
  beforeAll(async () => {
    stack = await open("dev", small);
  });

  /** Loses the connection when Azure has accepted the first resource of a type. */
  async function losesAzure(type: string): Promise<void> {
    await takingTime({ [type]: 600 });
    const up = stack.up();
    await until(async () => inCloud().some((one) => one.type.toLowerCase() === type.toLowerCase()));
    await killAzure();
    expect((await up).code).not.toBe(0);
    await startAzure();
    stack = await open("dev", small);
  }

  /** What the state knows by its id alone after a creation that Azure accepted and has forgotten. */
  async function leavesNothing(id: string): Promise<string[]> {
    await ask("POST", "/local/faults", { method: "PUT", id, accepted: true, leavesNothing: true });
    expect((await stack.up()).code).not.toBe(0);
    const urns = await unread(stack);
    expect(urns).toHaveLength(1);
    return urns;
  }

  it("takes up what Azure accepted at the subscription before the connection was lost", async () => {
    await losesAzure("Microsoft.Authorization/roleDefinitions");

    expect((await ids(stack)).inAzure).not.toEqual([]);
    await agrees(stack);
  });

  it("goes on where a creation failed and left nothing, which the plugin has recorded by its id", async () => {
    await leavesNothing("virtualNetworks/[^/]+$");

    // Its update would need what it has, to keep its subnets.
    expect(refused(await stack.up())).toMatch(/reading cloud state: Status=404/);
    expect(await recoverCommand(stack, "dev")).toMatch(/no longer in the state: \S+-vnet\n/);
  });

  it("goes on where the plugin has recorded nothing of it, as some versions do", async () => {
    for (const urn of await leavesNothing("/subnets/[^/]+$"))
      expect(await stack.command("state", "delete", urn, "--yes")).toMatchObject({ code: 0 });
  });

  it("takes up what Azure accepted in the group before the connection was lost", async () => {
    await losesAzure("Microsoft.Network/networkInterfaces");

    expect(inCloud().some(({ type }) => type.endsWith("networkInterfaces"))).toBe(true);
    await agrees(stack);
  });

  it("goes on where a machine left nothing, and ends whole", async () => {
    await leavesNothing("virtualMachines/[^/]+-workers-1$");

    succeeded(await stack.up("--skip-preview"));

    await agrees(stack);
    unchanged(await stack.up());
  });

  it("takes up at once all that an older state lacks, in Azure and in the cluster, and is destroyed whole", async () => {
    const exported = (await stack.stackExport()) as Exported;
    const lost: string[] = [];
    const resources = exported.deployment.resources.flatMap((one) => {
      const references = JSON.stringify({ ...one, inputs: undefined, outputs: undefined });
      const isLost =
        /-cp-1-bootstrap$/.test(one.urn) || lost.some((urn) => references.includes(urn));
      if (isLost) lost.push(one.urn);
      // Its outputs are written last.
      return isLost ? [] : one.type === "pulumi:pulumi:Stack" ? [{ ...one, outputs: {} }] : [one];
    });
    const file = join(state, "older.json");
    const deployment = { ...exported.deployment, resources };
    writeFileSync(file, JSON.stringify({ ...exported, deployment }));
    expect(await stack.command("stack", "import", "--file", file)).toMatchObject({ code: 0 });
    const deletions = async () =>
      (await requests()).filter(({ method }) => method === "DELETE").length;
    const before = await deletions();

    const said = await recoverCommand(stack, "dev");

    const [, found = ""] = /in Azure, and now in the state: (.*)/.exec(said) ?? [];
    expect(found.split(", ")).toEqual(
      expect.arrayContaining(
        ["cp-1", "workers-1", "workers-2"].map((name) => `zoned-dev-${name}-bootstrap`),
      ),
    );
    succeeded(await stack.up("--skip-preview"));
    await agrees(stack);
    expect(await deletions()).toBe(before);
    succeeded(await stack.destroy());
    expect(inCloud()).toEqual([]);
  });
});

describe("a rolling replacement that is struck while Azure makes the new VM of the first machine", () => {
  aLocalAzure();
  const machinesOnly = {
    ...small,
    cloudProvider: false,
    workerPools: [{ name: "workers", count: 1, size: "Standard_D4s_v5" }],
  };
  const otherImage = { ...machinesOnly, imageVersion: "24.04.202608110" };
  const rolled = ["cp-1", "cp-2", "cp-3", "workers-1"].flatMap((name) => [
    `DELETE zoned-prod-${name}`,
    `PUT zoned-prod-${name}`,
  ]);
  let stack: Rehearsal;
  /** How many requests there were before. */
  let before = 0;

  /** An update that ends in a strike. */
  async function strike(settings: object, by: () => void): Promise<void> {
    before = (await requests()).length;
    await stack.configure({ ...settings });
    await takingTime({ "Microsoft.Compute/virtualMachines": 10 });
    const up: Promise<Run> = stack.up();
    await until(async () => isBeingCreated(/\/virtualMachines\/zoned-prod-cp-1$/));
    by();
    expect((await up).code).not.toBe(0);
  }

  const vms = async (): Promise<string[]> =>
    (await requests())
      .slice(before)
      .filter(({ id, method }) => /\/virtualMachines\/[^/]+$/.test(id) && method !== "GET")
      .map(({ method, id }) => `${method} ${id.split("/").at(-1)}`);

  it("goes on with what Azure accepted before the connection was lost", async () => {
    const { far, cut } = await byCable();
    stack = await open("prod", machinesOnly, far);
    succeeded(await stack.up("--skip-preview"));
    await strike(otherImage, cut);
    await takingTime({});

    stack = await open("prod", otherImage);
    succeeded(await stack.up("--skip-preview"));

    await agrees(stack);
    expect(await vms()).toEqual(rolled);
    unchanged(await stack.up("--skip-preview"));
  });

  it("goes on where the engine was killed, by npm run recover and pulumi up", async () => {
    // No image named is any image, and what machines have stays.
    const named = { ...machinesOnly, imageVersion: versions.ubuntuImage };
    await strike(named, () => killEngine("prod"));
    const asIs = await stack.stackExport();
    // The engine's lock is still there, and nobody but the user knows that nobody works on the stack.
    await expect(recoverCommand(stack, "prod")).rejects.toThrow(
      /the stack is currently locked by 1 lock/,
    );
    expect(await stack.stackExport()).toEqual(asIs);
    expect(await stack.command("cancel", "--yes")).toMatchObject({ code: 0 });

    const plan = await recoverCommand(stack, "prod", "--dry-run");
    expect(plan).toContain("zoned-prod-cp-1-vm");
    expect(await stack.stackExport()).toEqual(asIs);

    const said = await recoverCommand(stack, "prod");
    expect(said).toMatch(/in Azure, and now in the state: zoned-prod-cp-1-vm\n/);
    expect(said).toContain(`pulumi up --stack prod --config-file ${stack.place.config}\n`);
    const copy = /the state as it was: (.*)/.exec(said)![1]!;
    expect(JSON.parse(readFileSync(copy, "utf8"))).toEqual(asIs);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    await takingTime({});
    succeeded(await stack.up("--skip-preview"));

    await agrees(stack);
    expect(await vms()).toEqual(rolled);
    unchanged(await stack.up("--skip-preview"));
    expect(await recoverCommand(stack, "prod")).toContain("nothing to recover");
  });
});
