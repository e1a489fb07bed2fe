import type { ChildProcess } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import {
  isRewriting,
  nextKeys,
  only,
  type RotationState,
} from "../../../components/kubeadm/rotations";
import type { Task } from "../../../components/machine/payload";
import { getLegacyTokens } from "../../../components/plan/rotations";
import type { PreviousOutputs } from "../../../components/plan/machine-changes";
import { checkout } from "../../../tools/shared/checkout";
import { Api, ApiError } from "../../../tools/local-azure/machines/simulated/api";
import { ended, RealApiServer, spawned, startEtcd } from "../../support/api-server";
import { FakeMachine } from "../../support/fake-machine";
import { freePort } from "../../support/listen";
import { testFolder } from "../../support/test-folder";
import { built, output } from "../../support/tools";
import { until } from "../../support/until";

const accounts = "/api/v1/namespaces/default/serviceaccounts";
const secrets = "/api/v1/namespaces/default/secrets";

/** By number, as the stack's state has them. */
const pairs = [1, 2].map(() => {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    trusted: `${publicKey.export({ type: "spki", format: "pem" })}`,
    key: `${privateKey.export({ type: "pkcs1", format: "pem" })}`,
  };
});

/** The real API server and controller manager of one machine, with the script that gives it keys. */
class ControlPlane {
  private manager: ChildProcess | undefined;

  private constructor(
    readonly machine: FakeMachine,
    readonly server: RealApiServer,
    private readonly managerPort: number,
  ) {}

  /** @param like one whose certificates of the real kubeadm it has */
  static async prepare(etcd: string, like?: ControlPlane): Promise<ControlPlane> {
    const machine = new FakeMachine({});
    const folder = join(machine.root, "etc/kubernetes");
    const server = await RealApiServer.prepare(folder, etcd, like?.server);
    return new ControlPlane(machine, server, await freePort());
  }

  /** By the script, as the bootstrap step of a stage has it. */
  async take(state: RotationState): Promise<void> {
    const { keys } = state;
    const tasks: Task[] = isRewriting(state) ? ["forget-account-keys"] : [];
    const file = (name: string, content: string) => ({
      path: `/etc/kubernetes/pki/${name}`,
      mode: "0600",
      content,
    });
    const of = (number: number) => pairs[number - 1]!;
    const files = [
      file("sa.pub", keys.map((number) => of(number).trusted).join("")),
      file("sa.key", of(keys[0]!).key),
      file("ca.crt", "a CA that nobody has ordered"),
    ];
    this.machine.ship("bootstrap.sh", "/script.sh", `${JSON.stringify({ tasks, files })}\n`);
    const { code, stderr } = await this.machine.run("/script.sh", ["payload", "service-accounts"]);
    expect([code, stderr]).toEqual([0, ""]);
  }

  /** As docs/day-2.md has it for a key that is known to others. */
  async forget(): Promise<void> {
    const text = readFileSync(join(checkout, "docs/day-2.md"), "utf8");
    const [command] = /^sed .*sa\.pub/m.exec(text)!;
    output("bash", ["-c", command.replace("/etc/kubernetes/pki", this.server.pki)]);
    await this.server.start();
  }

  async startManager(): Promise<void> {
    const { folder, pki } = this.server;
    await ended(this.manager);
    const flags = {
      kubeconfig: join(folder, "super-admin.conf"),
      "leader-elect": "false",
      "bind-address": "127.0.0.1",
      "secure-port": `${this.managerPort}`,
      controllers: "serviceaccount-controller,serviceaccount-token-controller",
      "root-ca-file": `${pki}/ca.crt`,
      "service-account-private-key-file": `${pki}/sa.key`,
    };
    this.manager = spawned("kube-controller-manager", flags, join(folder, "manager.log"));
  }

  get api(): Api {
    return this.server.api;
  }

  async newToken(): Promise<string> {
    const { status } = await this.api.post(`${accounts}/default/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: 3600 },
    });
    return status.token;
  }

  /** What the API server says of a token: 403 to one that may not, 401 to one that is nobody's. */
  statusOf = (token: string): Promise<number | undefined> =>
    this.server
      .of({ token })
      .get(secrets)
      .then(
        () => 200,
        (error: Error) => (error instanceof ApiError ? error.status : undefined),
      );

  /** Those that it publishes for whoever else verifies tokens. */
  publicKeys(): number {
    const kubeconfig = join(this.server.folder, "super-admin.conf");
    const jwks = ["get", "--raw", "/openid/v1/jwks"];
    const said = output(built("kubectl"), ["--kubeconfig", kubeconfig, ...jwks]);
    return (JSON.parse(said) as { keys: object[] }).keys.length;
  }
}

describe("two real API servers, a real controller manager and the real kubeadm", () => {
  let first: ControlPlane;
  let second: ControlPlane;

  beforeAll(async () => {
    const etcd = await startEtcd(testFolder());
    first = await ControlPlane.prepare(etcd);
    second = await ControlPlane.prepare(etcd, first);
    for (const one of [first, second]) await one.take(only(1));
    await Promise.all([first.server.start(), second.server.start()]);
    await first.startManager();
    await until("the account", () => first.api.find(`${accounts}/default`));
    await makeLegacySecret();
  });

  const makeLegacySecret = () =>
    first.api.post(secrets, {
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/service-account-token",
      metadata: {
        name: "legacy",
        annotations: { "kubernetes.io/service-account.name": "default" },
      },
    });

  const legacyToken = () =>
    until("the token in a Secret", async () => {
      const { data } = await first.api.get(`${secrets}/legacy`);
      return data?.token && Buffer.from(data.token, "base64").toString();
    });

  const legacyTokens = (keys: RotationState) =>
    getLegacyTokens({
      settings: { skipHealthCheckUntil: "" },
      previous: { serviceAccountKeys: keys } as PreviousOutputs,
      kubeconfig: first.server.kubeconfig,
      now: new Date().toISOString(),
    });

  it("admit every token of before at each moment of a change of the key, until the last stage", async () => {
    const tokens = new Set([await first.newToken(), await second.newToken(), await legacyToken()]);
    const [old] = tokens;
    const refused: string[] = [];
    let isOver = false;
    const watch = (async () => {
      while (!isOver) {
        for (const [name, one] of Object.entries({ first, second })) {
          for (const token of tokens) {
            const status = await one.statusOf(token);
            // A server that is started anew answers nobody meanwhile.
            if (status !== undefined && status !== 403) refused.push(`${name}: ${status}`);
          }
        }
        await wait(250);
      }
    })();

    const published: number[] = [];
    let keys = only(1);
    for (let up = 0; up < 2; up++) {
      keys = nextKeys(keys, 2);
      for (const one of [first, second]) {
        await one.take(keys);
        // kubeadm takes the file of several keys, and leaves it.
        const phase = ["init", "phase", "certs", "sa", "--config", one.server.configuration];
        expect(output(built("kubeadm"), phase)).toContain('Using the existing "sa" key');
        await one.server.start();
        if (one === first) await one.startManager();
        // Of both stages, at once.
        tokens.add(await first.newToken()).add(await second.newToken());
      }
      published.push(first.publicKeys());
      await wait(1000);
    }
    isOver = true;
    await watch;

    expect(refused).toEqual([]);
    expect(published).toEqual([2, 2]);
    expect(await legacyTokens(keys)).toEqual({ secrets: ["default/legacy"] });

    const fresh = await first.newToken();
    const legacy = await legacyToken();
    await second.forget();
    // As by a change of flags before the last stage.
    await second.take(keys);
    await second.server.start();
    await first.take(nextKeys(keys, 2));
    await first.server.start();
    for (const one of [first, second]) {
      expect(one.publicKeys()).toBe(1);
      expect([await one.statusOf(old!), await one.statusOf(legacy)]).toEqual([401, 401]);
      expect(await one.statusOf(fresh)).toBe(403);
    }
  });

  it("show a Secret that was made anew to have a token of the new key", async () => {
    const signing = { keys: [2, 1], rewritten: true, past: [] };
    await first.api.delete(`${secrets}/legacy`);
    expect(await legacyTokens(signing)).toEqual({ secrets: [] });

    await first.startManager();
    await makeLegacySecret();

    expect(await first.statusOf(await legacyToken())).toBe(403);
    expect(await legacyTokens(signing)).toEqual({ secrets: [] });
  });

  it("are not asked for Secrets where no key is to go, nor where they are not to be asked", async () => {
    const silent = { kubeconfig: "none", now: "2026-11-28T12:00:00.000Z" };
    const previous = (keys: RotationState) => ({ serviceAccountKeys: keys }) as PreviousOutputs;
    const skipHealthCheckUntil = "20261128T130000Z";
    const signing = { keys: [2, 1], rewritten: true, past: [] };

    expect(
      await getLegacyTokens({
        ...silent,
        settings: { skipHealthCheckUntil: "" },
        previous: previous(nextKeys(only(1), 2)),
      }),
    ).toEqual({ secrets: [] });
    expect(
      await getLegacyTokens({
        ...silent,
        settings: { skipHealthCheckUntil },
        previous: previous(signing),
      }),
    ).toEqual({ secrets: [] });
  });

  it("say why nobody knows where they do not answer", async () => {
    const port = await freePort();
    const kubeconfig = first.server.kubeconfig.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${port}`);

    expect(
      await getLegacyTokens({
        settings: { skipHealthCheckUntil: "" },
        previous: {
          serviceAccountKeys: { keys: [2, 1], rewritten: true, past: [] },
        } as unknown as PreviousOutputs,
        kubeconfig,
        now: new Date().toISOString(),
      }),
    ).toEqual({ unknown: expect.stringMatching(/does not answer from here \(ECONNREFUSED\)/) });
  });
});
