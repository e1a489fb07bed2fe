import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { checkout } from "../../shared/checkout";
import type { Answer } from "../../trace/model/packet";
import { testFolder } from "../../../tests/support/test-folder";

const service = (address: string, chain: string, endpoint: string): string => `
-A KUBE-SERVICES -d ${address}/32 -p tcp -m comment --comment "default/${chain}:http cluster IP" -m tcp --dport 80 -j KUBE-SVC-${chain}
-A KUBE-SVC-${chain} -m comment --comment "default/${chain}:http -> ${endpoint}" -j KUBE-SEP-${chain}
-A KUBE-SEP-${chain} -p tcp -m comment --comment "default/${chain}:http" -m tcp -j DNAT --to-destination ${endpoint}`;

const dump = `*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-NODEPORTS - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
${service("10.96.0.1", "one", "10.244.1.6:8080")}
${service("10.96.0.2", "two", "10.244.2.4:8080")}
-A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
`;

let folder: string;
let dumps: string;
beforeEach(() => {
  folder = testFolder();
  dumps = join(folder, "dumps");
  mkdirSync(dumps);
  writeFileSync(join(dumps, "nat.txt"), dump);
});

/** As npm runs it. */
function run(...args: string[]) {
  const program = join(checkout, "tools/cli/zoned.cjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

describe("a picture of the path", () => {
  const draw = (file: string) => run("trace", "--to", "10.96.0.1:80", "--svg", file, dumps);

  it("goes into a named pipe, which stays one", async () => {
    const [pipe, read] = [join(folder, "pipe"), join(folder, "read")];
    const reader = spawn("sh", ["-c", 'mkfifo "$0" && cat "$0" >"$1"', pipe, read]);
    const ended = once(reader, "close");
    while (!existsSync(pipe)) await wait(20);

    expect(draw(pipe)).toMatchObject({ status: 0 });

    expect(lstatSync(pipe).isFIFO()).toBe(true);
    await ended;
    expect(readFileSync(read, "utf8")).toMatch(/^<svg /);
  });

  it("goes into the file that a link leads to", () => {
    writeFileSync(join(folder, "1.svg"), "before");
    symlinkSync("1.svg", join(folder, "latest.svg"));

    expect(draw(join(folder, "latest.svg"))).toMatchObject({ status: 0 });

    expect(readlinkSync(join(folder, "latest.svg"))).toBe("1.svg");
    expect(readFileSync(join(folder, "1.svg"), "utf8")).toMatch(/^<svg /);
  });
});

it("prints nothing but the answer with --json", () => {
  const { status, stdout, stderr } = run("trace", "--json", "--to", "10.96.0.1:80/tcp", dumps);

  const { mode, packet, verdict, endpoints } = JSON.parse(stdout) as Answer;
  expect({ mode, verdict, endpoints }).toEqual({
    mode: "iptables",
    verdict: "dnat",
    endpoints: [{ address: "10.244.1.6:8080", probability: 1 }],
  });
  expect(packet).toEqual({
    from: "pod",
    source: null,
    destination: "10.96.0.1",
    port: 80,
    protocol: "tcp",
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
});

it("answers a batch one a line, in the order of the queries", () => {
  const batch = join(folder, "queries.json");
  writeFileSync(
    batch,
    '{"to":"10.96.0.2:80"}\n{"to":"10.96.0.1:80","from":"node"}\n{"to":"10.0.0.1:1"}\n',
  );

  const { status, stdout } = run("trace", "--batch", batch, dumps);

  const answers = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Answer);
  expect(answers.map(({ packet, verdict }) => `${packet.destination} ${verdict}`)).toEqual([
    "10.96.0.2 dnat",
    "10.96.0.1 dnat",
    "10.0.0.1 pass",
  ]);
  expect(status).toBe(0);
});

it("answers nothing of a batch that has a bad line", () => {
  const batch = join(folder, "queries.json");
  writeFileSync(batch, '{"to":"10.96.0.2:80"}\n{"to":"10.96.0.1"}\n');

  const { status, stdout, stderr } = run("trace", "--batch", batch, dumps);

  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toMatch(/^zoned: .*queries\.json: line 2: to: expected ADDRESS:PORT.*\n$/);
});

it("draws the path into a file, and describes it in words", () => {
  const picture = join(folder, "path.svg");

  const { stdout } = run("trace", "--to", "10.96.0.1:80", "--svg", picture, dumps);

  expect(stdout).toContain("pod → 10.96.0.1:80/tcp");
  expect(readFileSync(picture, "utf8")).toMatch(/^<svg .*<\/svg>\n$/s);
  expect(readdirSync(folder).sort()).toEqual(["dumps", "path.svg"]);
});

it.each([
  ["nothing to trace", [], "expected one of --to, --service and --batch, got none"],
  ["two queries", ["--to", "10.96.0.1:80", "--service", "a/b"], "got --to and --service"],
  ["no dumps", ["--to", "10.96.0.1:80"], "expected a folder or files with dumps"],
  [
    "a folder that is not there",
    ["--to", "10.96.0.1:80", "/nowhere"],
    "/nowhere, which is not there",
  ],
  ["a wrong address", ["--to", "10.96.0.256:80", "DUMPS"], '"10.96.0.256" is no address'],
  [
    "a wrong origin",
    ["--to", "10.96.0.1:80", "--from", "moon", "DUMPS"],
    "one of pod, node, outside",
  ],
  ["--dump without --node", ["--dump", "d"], "name it with --node"],
])("ends with 2 and one message for %s", (_, args, message) => {
  const { status, stdout, stderr } = run(
    "trace",
    ...args.map((arg) => (arg === "DUMPS" ? dumps : arg)),
  );

  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toContain(message);
  expect(stderr).not.toMatch(/\n {4}at /);
});

it("gives help with examples, which is no mistake", () => {
  const { status, stdout } = run("trace", "--help");

  expect(stdout).toContain("npm run trace -- --to 10.96.0.10:53/udp dumps/");
  expect(status).toBe(0);
});

it("counts dumps side by side, with a dash for what no dump says", () => {
  const { stdout } = run("compare", dumps, join(dumps, "nat.txt"));

  expect(stdout).toMatch(/^rules +9 +9$/m);
  expect(stdout).toMatch(/^IPVS services +– +–$/m);
  const [first] = JSON.parse(run("compare", "--json", dumps).stdout) as unknown[];
  expect(first).toMatchObject({ dump: dumps, rules: 9, members: null });
});

it("says that a virtual machine is where to measure, and does not measure without being told to", () => {
  const { status, stdout, stderr } = run("compare", "--virtual-machine", dumps);

  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toContain("--virtual-machine says where to --measure: give both");
});
