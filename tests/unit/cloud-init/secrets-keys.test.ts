import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { stringify } from "yaml";

import { encryptionFile, encryptionFlags } from "../../../components/kubeadm/encryption";
import { isRewriting, nextKeys, only, RotationState } from "../../../components/kubeadm/rotations";
import { Api, ApiError, Body } from "../../../tools/local-azure/machines/simulated/api";
import { RealApiServer, startEtcd } from "../../support/api-server";
import { FakeMachine } from "../../support/fake-machine";
import { testFolder } from "../../support/test-folder";
import { built, output } from "../../support/tools";

const encryptionSecret = "a key in the stack's state";
const namespace = "/api/v1/namespaces/default/secrets";

/** A control plane machine, as far as its API server and its script are concerned. */
class ControlPlane {
  private constructor(
    readonly machine: FakeMachine,
    readonly server: RealApiServer,
  ) {}

  /** @param like one whose certificates of the real kubeadm it has */
  static async prepare(etcd: string, like?: ControlPlane): Promise<ControlPlane> {
    const machine = new FakeMachine({});
    const folder = join(machine.root, "etc/kubernetes");
    const server = await RealApiServer.prepare(folder, etcd, like?.server);
    machine.write("/etc/kubernetes/admin.conf", machine.read("/etc/kubernetes/super-admin.conf"));
    machine.write(
      "/etc/kubernetes/manifests/kube-apiserver.yaml",
      stringify(Object.entries(encryptionFlags).map(([name, value]) => `--${name}=${value}`)),
    );
    machine.program("kubectl", `exec ${built("kubectl")} "$@"`);
    machine.ship("bootstrap.sh", "/script.sh");
    machine.write("/run/zoned/variables", "api_name=it\napi_port=6443\n");
    return new ControlPlane(machine, server);
  }

  take(keys: RotationState): void {
    const { path, content } = encryptionFile(encryptionSecret, keys);
    this.machine.write(path, content, 0o600);
  }

  /** Starts the API server, or starts it anew, as a reboot would. */
  start(): Promise<void> {
    const file = `${this.machine.root}${encryptionFlags["encryption-provider-config"]}`;
    return this.server.start({ ...encryptionFlags, "encryption-provider-config": file });
  }

  get api(): Api {
    return this.server.api;
  }

  run = (what: string) => this.machine.run("/script.sh", [what]);

  /** What the script asks before the next machine may begin. */
  hasLoaded = async (): Promise<boolean> => (await this.run("keys_are_loaded")).code === 0;
}

describe("two real API servers on one real etcd", () => {
  let url: string;
  let first: ControlPlane;
  let second: ControlPlane;

  /** What etcd has stored of every Secret. */
  const raw = (): string[] => {
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const range = { key: base64("/registry/secrets/"), range_end: base64("/registry/secrets0") };
    const said = output("curl", [
      "--silent",
      "--data",
      JSON.stringify(range),
      `${url}/v3/kv/range`,
    ]);
    const { kvs = [] } = JSON.parse(said) as { kvs?: { value: string }[] };
    return kvs.map(({ value }) => Buffer.from(value, "base64").toString("latin1"));
  };
  const prefixes = () => [...new Set(raw().map((value) => value.slice(0, 26)))];

  const secret = (name: string) => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name },
    stringData: { password: `the password of ${name}` },
  });

  beforeAll(async () => {
    url = await startEtcd(testFolder());
    first = await ControlPlane.prepare(url);
    second = await ControlPlane.prepare(url, first);
    for (const one of [first, second]) one.take(only(1));
    await Promise.all([first.start(), second.start()]);
    await first.api
      .post("/api/v1/namespaces", {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: "default" },
      })
      .catch(() => undefined);
  });

  it("store a Secret encrypted, which the other one reads", async () => {
    await first.api.post(namespace, secret("old"));

    expect(prefixes()).toEqual(["k8s:enc:secretbox:v1:key1:"]);
    expect(await first.hasLoaded()).toBe(true);
    expect(raw().join()).not.toContain("the password of old");
    expect((await second.api.get(`${namespace}/old`)).metadata.name).toBe("old");
  });

  it("read and write each other's Secrets at every moment of a change of the key", async () => {
    const unread: string[] = [];
    let written = 0;
    let isOver = false;
    const busy = async (): Promise<void> => {
      while (!isOver) {
        const [writer, reader] = written % 2 ? [first, second] : [second, first];
        const name = `busy-${written}`;
        written += 1;
        try {
          await writer.api.post(namespace, secret(name));
          const { data } = await reader.api.get(`${namespace}/${name}`);
          const password = Buffer.from(data.password, "base64").toString();
          if (password !== `the password of ${name}`) unread.push(name);
        } catch (error) {
          // A server that is started anew answers nobody meanwhile.
          if (error instanceof ApiError) unread.push(`${name}: ${error.message}`);
        }
        await wait(500);
      }
    };
    const writes = busy();

    const seen: string[][] = [];
    let keys = only(1);
    for (let up = 0; up < 3; up++) {
      keys = nextKeys(keys, 2);
      for (const one of [first, second]) {
        one.take(keys);
        if (up === 1 && one === first) {
          expect(await one.hasLoaded()).toBe(false);
          // By itself, within a minute.
          for (let tries = 0; tries < 20 && !(await one.hasLoaded()); tries++) await wait(5000);
        } else {
          await one.start();
        }
        expect(await one.hasLoaded()).toBe(true);
      }
      if (isRewriting(keys)) expect(await second.run("rewrite_secrets")).toMatchObject({ code: 0 });
      seen.push(prefixes());
    }
    isOver = true;
    await writes;

    expect(unread).toEqual([]);
    expect(written).toBeGreaterThan(20);
    expect(seen).toEqual([
      ["k8s:enc:secretbox:v1:key1:"],
      ["k8s:enc:secretbox:v1:key2:"],
      ["k8s:enc:secretbox:v1:key2:"],
    ]);
    const { data } = await second.api.get(`${namespace}/old`);
    expect(Buffer.from(data.password, "base64").toString()).toBe("the password of old");
  });

  it("let the script rewrite Secrets that somebody changes and removes meanwhile", async () => {
    const admin = join(second.machine.root, "etc/kubernetes/admin.conf");
    for (const name of ["changed", "removed"]) await first.api.post(namespace, secret(name));
    const kubectl = `${built("kubectl")} --kubeconfig ${admin}`;
    second.machine.program(
      "kubectl",
      `[[ $* == *"get secrets"* ]] || exec ${built("kubectl")} "$@"
      all=$(${built("kubectl")} "$@")
      ${kubectl} annotate secret changed by=somebody >/dev/null
      ${kubectl} delete secret removed >/dev/null
      echo "$all"`,
    );

    expect(await second.run("rewrite_secrets")).toMatchObject({ code: 0 });

    expect(await first.api.find(`${namespace}/removed`)).toBeUndefined();
    const { metadata } = (await first.api.get(`${namespace}/changed`)) as Body;
    expect(metadata.annotations).toEqual({ by: "somebody" });
  });

  it("make the script fail, and say why, while Secrets cannot be rewritten", async () => {
    second.machine.program(
      "kubectl",
      `[[ $* == *"get secrets"* ]] && exec ${built("kubectl")} "$@"
      echo 'Error from server (Conflict): error when replacing "STDIN": it was changed' >&2
      echo 'Error from server (Forbidden): error when replacing "STDIN": nobody may' >&2
      exit 1`,
    );

    const { code, stdout } = await second.run("rewrite_secrets");

    expect(code).not.toBe(0);
    expect(stdout).toMatch(/not every Secret is encrypted .*Forbidden.*nobody may/);
    expect(stdout).not.toMatch(/Conflict/);
  });
});
