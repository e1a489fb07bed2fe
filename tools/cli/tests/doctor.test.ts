import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { run as runProgram, runCommand } from "../../../tests/support/tools";
import {
  healthyCluster,
  serveCluster,
  threeByThree,
} from "../../doctor/tests/support/cluster-state";
import { testFolder } from "../../../tests/support/test-folder";

const cluster = { current: healthyCluster() };
const folder = testFolder();
let api: Awaited<ReturnType<typeof serveCluster>>;
beforeAll(async () => {
  api = await serveCluster(cluster);
});
beforeEach(() => {
  cluster.current = healthyCluster();
});

/** A pulumi on the PATH that has one stack, `prod`, with these outputs. */
function havingOutputs(outputs: object): void {
  const script = [
    "#!/bin/sh",
    `if [ "$*" = "stack output --json --show-secrets --stack prod --non-interactive --color never" ]`,
    `then cat '${folder}/outputs.json'`,
    `else echo "error: no stack named '$6' found" >&2; exit 255`,
    "fi",
  ];
  writeFileSync(join(folder, "outputs.json"), JSON.stringify(outputs));
  writeFileSync(join(folder, "pulumi"), `${script.join("\n")}\n`, { mode: 0o755 });
}

const run = (...words: string[]) => runCommand(folder, words);
const doctor = (...words: string[]) => run("doctor", ...words);

const outputs = () => ({
  kubeconfig: api.kubeconfig,
  machines: threeByThree.machines,
  cluster: { machines: { "cp-1": { kubernetesVersion: "1.36.3" } } },
});
const cordon = (isCordoned: boolean) =>
  (cluster.current.nodes[0]!.spec = {
    ...cluster.current.nodes[0]!.spec,
    unschedulable: isCordoned,
  });

it("ends with 0 and a table of zones when the cluster is healthy", async () => {
  havingOutputs(outputs());

  const { code, stdout } = await doctor("--stack", "prod");

  expect(stdout).toMatch(/^southeastasia-2 +✓ cp-2 +✓ workers-2$/m);
  expect(stdout).toMatch(/^stack prod: healthy$/m);
  expect(code).toBe(0);
});

it("ends with 1 when it is not, and prints nothing but JSON to a program that asks for it", async () => {
  havingOutputs(outputs());
  cordon(true);

  const { code, stdout } = await doctor("--stack", "prod", "--json");

  expect(JSON.parse(stdout)).toMatchObject({ stack: "prod", looked: true, healthy: false });
  expect(code).toBe(1);
});

it("ends with 1 when an add-on that the outputs name is gone", async () => {
  const { cluster, ...others } = outputs();
  const addOns = ["Deployment kube-system/cloud-controller-manager"];
  havingOutputs({ ...others, cluster: { ...cluster, addOns } });

  const { code, stdout } = await doctor("--stack", "prod");

  expect(stdout).toMatch(
    /✗ add-ons: Deployment kube-system\/cloud-controller-manager is not there/,
  );
  expect(code).toBe(1);
});

it("looks again until it is healthy", async () => {
  havingOutputs(outputs());
  cordon(true);

  const ended = doctor("--stack", "prod", "--wait", "5m");
  for (const before = api.readiness.asked; api.readiness.asked === before;) await pause(50);
  await pause(1000);
  cordon(false);

  expect(await ended).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^stack prod: healthy$/m),
  });
});

it("gives up waiting when the time is over", async () => {
  havingOutputs(outputs());
  cordon(true);

  expect(await doctor("--stack", "prod", "--wait", "1s")).toMatchObject({ code: 1 });
});

it.each<[string, () => object, string[], RegExp]>([
  ["there is no such stack", outputs, ["--stack", "prd"], /no stack named 'prd' found.*--state/s],
  [
    "no update has ended well",
    () => ({}),
    ["--stack", "prod"],
    /no outputs kubeconfig and machines/,
  ],
  [
    "nobody answers",
    () => ({ ...outputs(), kubeconfig: api.kubeconfig.replace(/localhost:\d+/, "localhost:1") }),
    ["--stack", "prod"],
    /✗ API: .*ECONNREFUSED.*stack prod: could not look/s,
  ],
  [
    "no rehearsal runs",
    outputs,
    ["--state", join(folder, "nowhere")],
    /no rehearsal runs in .*nowhere: npm start/,
  ],
])("ends with 2 and says why when %s", async (_, having, words, says) => {
  havingOutputs(having());

  const { code, stdout, stderr } = await doctor(...words);

  expect(`${stdout}${stderr}`).toMatch(says);
  expect(`${stdout}${stderr}`).not.toMatch(/^ +at /m);
  expect(code).toBe(2);
});

it.each([
  ["whose reader has ended", "| true", "--stack prod", /ended with 0/],
  ["of which only the beginning is read", "2>&1 | head -1", "--stack prod", /ended with 0/],
  ["of a full disk", ">/dev/full", "--stack prod", /the disk is full\nended with 2/],
  ["whose reader has no need of help", "| true", "--help", /ended with 0/],
])("ends with its verdict or a sentence behind an output %s", async (_, output, words, says) => {
  havingOutputs(outputs());
  const doctor = `"$1" tools/cli/zoned.cjs doctor ${words}`;
  const line = `(${doctor}; echo "ended with $?" >&3) 3>&2 ${output}`;
  const PATH = [folder, process.env["PATH"]].join(delimiter);
  const env = { ...process.env, PATH, NO_PROXY: "localhost", no_proxy: "localhost" };

  const { stderr } = await runProgram("sh", ["-c", line, "sh", process.execPath], env);

  expect(stderr).toMatch(says);
  expect(stderr).not.toMatch(/^ +at /m);
});

it("says which variable of the shell is no proxy", async () => {
  havingOutputs(outputs());

  const { code, stderr } = await runCommand(folder, ["doctor", "--stack", "prod"], {
    https_proxy: "10.0.0.4:3128",
  });

  expect(stderr).toMatch(/^zoned: HTTPS_PROXY of this shell is 10\.0\.0\.4:3128, expected /m);
  expect(stderr).not.toMatch(/^ +at /m);
  expect(code).toBe(2);
});

describe("npm run report", () => {
  const file = join(folder, "report.md");
  const link = join(folder, "latest.md");

  it("writes health, nodes, add-ons and storage classes, and no id, address or credential", async () => {
    havingOutputs(outputs());
    cluster.current.nodes[0]!.metadata.name = "46bb8116-3ea4-4e93-b476-be1ffcde1f3d";

    writeFileSync(file, "");
    symlinkSync("report.md", link);

    const { code, stdout } = await run("report", "--stack", "prod", "--output", link);

    const text = readFileSync(file, "utf8");
    expect(code).toBe(0);
    expect(stdout).toContain(link);
    expect(text).toMatch(/^- ✓ etcd takes writes/m);
    expect(text).toMatch(/^- ✗ Nodes: /m);
    expect(text).toMatch(/^\| workers-2 \| worker \| southeastasia-2 \| .* v1\.36\.3 /m);
    expect(text).toMatch(/^\| DaemonSet \| kube-system\/kube-proxy \| 6 of 6 \| /m);
    expect(text).toMatch(/^\| zonal \| disk\.csi\.azure\.com \| skuName=Premium_LRS \|/m);
    expect(text).toContain("| (id) |");
    expect(text).not.toMatch(/localhost|127\.0\.0\.1|46bb8116|BEGIN|client-key/);
  });

  it("writes what it saw of a cluster that is too sick to say of what it consists", async () => {
    havingOutputs(outputs());
    Object.assign(api.readiness, { status: 500, text: "[-]etcd failed" });
    cluster.current = { ...cluster.current, nodes: undefined as never };

    const { code, stdout } = await run("report", "--stack", "prod", "--output", file);

    Object.assign(api.readiness, { status: 200, text: "ok" });
    const text = readFileSync(file, "utf8");
    expect(text).toMatch(/^- ✗ API: .*\[-\]etcd failed/m);
    expect(text).toMatch(/^It could not be read: .*answered 404 to GET \/api\/v1\/nodes/m);
    expect(text).not.toMatch(/localhost|127\.0\.0\.1/);
    expect(stdout).toMatch(/^stack prod: .*\n.*report\.md$/m);
    expect(code).toBe(0);
  });

  it("sends whom a private API does not answer to its network", async () => {
    const { kubeconfig, cluster: before, ...others } = outputs();
    const nobody = kubeconfig.replace(/localhost:\d+/, "localhost:9");
    const isPrivate = { ...before, apiAddress: "172.16.0.4" };
    havingOutputs({ ...others, kubeconfig: nobody, cluster: isPrivate });

    const { stdout } = await doctor("--stack", "prod");

    expect(stdout).toMatch(/→ the API is private: .*172\.16\.0\.4/);
    expect(stdout).not.toContain("see if apiAccessCidrs");
  });

  it("writes nothing where the API does not answer", async () => {
    const { kubeconfig, ...others } = outputs();
    const nobody = kubeconfig.replace(/localhost:\d+/, "localhost:9");
    havingOutputs({ ...others, kubeconfig: nobody });

    const absent = join(folder, "absent.md");
    const { code, stderr } = await run("report", "--stack", "prod", "--output", absent);

    expect(code).toBe(2);
    expect(stderr).toMatch(/✗ API: .*apiAccessCidrs/s);
    expect(() => readFileSync(absent)).toThrow(/ENOENT/);
  });
});
