import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { account } from "../../local-azure/arm/resources/resource";
import { attachedEnvironment, type OfficialPlugins } from "../../local-azure/daemon/attachment";
import { damageOf, endRunsIn, environmentOf, environmentOfRun, following, pulumi } from "../pulumi";
import { testFolder } from "../../../tests/support/test-folder";
import { checkout } from "../../shared/checkout";
import { identityOf, isAlive } from "../../shared/pids";

describe("the environment of the engine", () => {
  const ports = {
    resourceManager: 1,
    azureNative: 2,
    tls: 3,
    kubernetes: 4,
    proxy: 5,
    blob: 6,
    login: 7,
  };
  const options = { binaries: "/bin", state: "/state", program: "/program", passphrase: "secret" };
  const azure = { ports, authority: "/state/azure-ca.crt", apiAddress: async () => undefined };

  const environment = { ...process.env };
  afterEach(() => void (process.env = { ...environment }));

  const given = (
    variables: Record<string, string>,
    official: OfficialPlugins = [],
  ): NodeJS.ProcessEnv => {
    process.env = { PATH: "", ...variables };
    return environmentOf({ ...options, environment: attachedEnvironment(azure, official) });
  };

  it("leads the program to the clusters' APIs, and to this host without a proxy", () => {
    const env = given({});

    expect(env).toMatchObject({
      HTTPS_PROXY: "http://127.0.0.1:5",
      https_proxy: "http://127.0.0.1:5",
      NO_PROXY: "127.0.0.1,localhost,::1",
      no_proxy: "127.0.0.1,localhost,::1",
    });
  });

  it("keeps what the user reaches without a proxy, but for the names that are Azure's", () => {
    const { NO_PROXY, no_proxy } = given({
      NO_PROXY: "*, registry.example,.azure.com, .internal,api.zoned-0a1b.internal",
      no_proxy: "10.0.0.0/8,localhost,westeurope.cloudapp.azure.com",
    });

    const expected = "10.0.0.0/8,localhost,registry.example,127.0.0.1,::1";
    expect([NO_PROXY, no_proxy]).toEqual([expected, expected]);
  });

  it("takes its own proxy where the user has one, which leads to the internet only, and gRPC's own settings away", () => {
    const env = given({
      https_proxy: "http://proxy.example:3128",
      HTTPS_PROXY: "http://proxy.example:3128",
      HTTP_PROXY: "http://proxy.example:3128",
      grpc_proxy: "http://proxy.example:3128",
      no_grpc_proxy: "example.org",
    });

    expect(JSON.stringify(env).match(/"[A-Za-z_]*proxy":"[^"]*example[^"]*"/gi)).toEqual([
      '"HTTP_PROXY":"http://proxy.example:3128"',
      '"ZONED_OUTER_PROXY":"http://proxy.example:3128"',
    ]);
  });

  it("knows nothing of the user's accounts, backend and clusters", () => {
    const theirs = {
      PULUMI_ACCESS_TOKEN: "pul-theirs",
      PULUMI_BACKEND_URL: "https://theirs.example",
      PULUMI_CONFIG_PASSPHRASE: "theirs",
      PULUMI_HOME: "/theirs",
      ARM_SUBSCRIPTION_ID: "theirs",
      ARM_CLIENT_SECRET: "theirs",
      AZURE_CLIENT_SECRET: "theirs",
      AZURE_CONFIG_DIR: "/theirs",
      KUBECONFIG: "/theirs",
    };
    const env = given({ ...theirs, LANG: "C.UTF-8" });

    expect(JSON.stringify(env)).not.toContain("theirs");
    expect(env).toMatchObject({
      LANG: "C.UTF-8",
      PULUMI_HOME: "/state/pulumi-home",
      PULUMI_CONFIG_PASSPHRASE: "secret",
      // Nothing is downloaded, nor looked for, that nobody has asked for.
      PULUMI_SKIP_UPDATE_CHECK: "true",
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
    });
  });

  it("leads the engine to the stand-ins, and official plugins to the local Azure by what azure-native reads", () => {
    const theirs = { PATH: "/theirs", ARM_USE_MSI: "true", ARM_SUBSCRIPTION_ID: "theirs" };
    const [standIns, mixed, official] = [
      [],
      ["kubernetes"],
      ["azure-native", "tls", "kubernetes"],
    ].map((plugins) => given(theirs, plugins));

    expect(standIns).toMatchObject({
      PULUMI_DEBUG_PROVIDERS: "azure-native:2,tls:3,kubernetes:4",
      PATH: ["/bin", dirname(process.execPath), "/theirs"].join(delimiter),
    });
    expect(standIns).not.toHaveProperty("ARM_METADATA_HOSTNAME");
    expect(mixed).toMatchObject({ PULUMI_DEBUG_PROVIDERS: "azure-native:2,tls:3" });
    expect(mixed).not.toHaveProperty("ARM_METADATA_HOSTNAME");
    expect(official).not.toHaveProperty("PULUMI_DEBUG_PROVIDERS");
    expect(Object.entries(official!).filter(([name]) => /^(ARM|AZURE|SSL)_/.test(name))).toEqual([
      ["ARM_METADATA_HOSTNAME", "127.0.0.1:1"],
      ["ARM_SUBSCRIPTION_ID", account.subscriptionId],
      ["SSL_CERT_FILE", "/state/azure-ca.crt"],
    ]);
    const login = expect.stringMatching(/\/local-azure\/login$/);
    expect(official!["PATH"]!.split(delimiter)).toEqual([
      ...["/bin", dirname(process.execPath), login, "/theirs"],
    ]);
  });

  it("sets no proxy where no local Azure runs", () => {
    process.env = { PATH: "" };

    expect(environmentOf(options)).not.toHaveProperty("HTTPS_PROXY");
  });

  it("turns ts-node off for a language host that is too old to read the runtime option typescript", () => {
    const env = { ...environmentOf(options), PULUMI_NODEJS_TYPESCRIPT: "true" };
    const said = execFileSync(process.execPath, ["-p", "process.env.PULUMI_NODEJS_TYPESCRIPT"], {
      env,
    });

    expect(said.toString().trim()).toBe("false");
  });

  it.each(["/tmp/zoned ü x", "/tmp/100%20 #1?", "/tmp/it's"])(
    "names the engine's state in %s by a URL that leads there",
    (state) => {
      const { PULUMI_BACKEND_URL = "" } = environmentOf({
        ...{ binaries: "", program: "", passphrase: "" },
        state,
      });

      expect(decodeURIComponent(new URL(PULUMI_BACKEND_URL).pathname)).toBe(join(state, "backend"));
      expect(PULUMI_BACKEND_URL).toMatch(/^[^?#]*\?metadata=skip$/);
    },
  );

  it("gives an engine a folder for what plugins leave in clear, and removes it with the run", async () => {
    const state = testFolder();
    const engine = '#!/bin/sh\necho secret > "$TMPDIR/kubeconfig1"; echo "$TMPDIR/kubeconfig1"';
    writeFileSync(join(state, "pulumi"), engine, { mode: 0o755 });

    const { stdout } = await pulumi(["version"], {
      ...options,
      state,
      binaries: state,
      program: state,
    });

    const left = stdout.trim();
    expect(dirname(dirname(left))).toBe(state);
    expect(existsSync(dirname(left))).toBe(false);
  });

  it("lets previews alone skip checkpoints, without which a killed update would lose what it has made", async () => {
    const state = testFolder();
    const engine = '#!/bin/sh\necho "${PULUMI_SKIP_CHECKPOINTS:-no}"';
    writeFileSync(join(state, "pulumi"), engine, { mode: 0o755 });
    const skips = async (command: string) =>
      (
        await pulumi([command], { ...options, state, binaries: state, program: state })
      ).stdout.trim();

    expect(await Promise.all(["preview", "up", "destroy", "refresh"].map(skips))).toEqual([
      ...["true", "no", "no", "no"],
    ]);
  });
});

const state = `/nowhere/${process.pid} ü x`;
const run = `${state}/up-1-1`;

function start() {
  const env = { ...process.env, ...environmentOfRun(run) };
  const { pid } = spawn("sleep", ["60"], { stdio: "ignore", detached: true, env });
  return identityOf(pid!);
}

test("what a run has left ends with it, also when it failed", async () => {
  let left;
  const ending = following(run, async () => {
    left = start();
    throw new Error("the engine was killed");
  });

  await expect(ending).rejects.toThrow("the engine was killed");
  expect(isAlive(left!)).toBe(false);
});

test("a run that this process waits for is no leftover", async () => {
  await following(run, async () => {
    const one = start();
    await endRunsIn(state);
    expect(isAlive(one)).toBe(true);
  });
});

test("a program ends when its engine was killed, however busy it is", async () => {
  const preload = JSON.stringify(`${checkout}/tools/pulumi/preload.cjs`);
  const program = "process.stdout.write(String(process.pid)); for (;;);";
  const engine = spawn("sh", ["-c", `"$0" -e "$1" & wait`, process.execPath, program], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_OPTIONS: `--require ${preload}` },
  });
  const [pid] = await once(engine.stdout.setEncoding("utf8"), "data");
  const busy = identityOf(Number(pid));
  expect(isAlive(busy)).toBe(true);

  engine.kill("SIGKILL");

  while (isAlive(busy)) await wait(50);
});

describe("a checkpoint", () => {
  let folder: string;
  beforeEach(() => (folder = testFolder()));

  function damage(text: string): string | undefined {
    const file = join(folder, "dev.json");
    writeFileSync(file, text);
    return damageOf(file);
  }

  it.each([
    ["a new stack", { stack: "organization/zoned/dev", latest: { manifest: {} } }],
    ["one with resources", { stack: "organization/zoned/dev", latest: { resources: [{}] } }],
  ])("finds nothing wrong with %s", (_, checkpoint) => {
    expect(damage(JSON.stringify({ version: 3, checkpoint }))).toBeUndefined();
  });

  it.each(["", '{"version":3,"checkpo'])("says of %j that it is no JSON", (text) => {
    expect(damage(text)).toBe("it is no JSON");
  });

  it.each([
    "{}",
    "null",
    "[]",
    '"text"',
    '{"version":3}',
    '{"version":3,"checkpoint":{}}',
    '{"version":3,"checkpoint":{"stack":"organization/zoned/dev","latest":{"resources":{}}}}',
    '{"version":3,"checkpoint":{"stack":"organization/zoned/dev","latest":{"pending_operations":{}}}}',
    '{"version":"3","checkpoint":{"stack":"organization/zoned/dev","latest":{}}}',
  ])(
    "says of %s, of which the engine would make an empty stack or a riddle, that it is no state",
    (text) => {
      expect(damage(text)).toBe("it is JSON, but no state of a stack");
    },
  );
});
