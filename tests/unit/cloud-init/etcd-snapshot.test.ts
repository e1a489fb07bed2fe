import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

import { bootstrapText } from "../../../components/machine/payload";
import { snapshotFiles } from "../../../components/machine/timers";
import { discoveryDocument, keysDocument, keysUrl } from "../../../components/token-issuer";
import { account } from "../../../tools/local-azure/arm/resources/resource";
import { TokenService } from "../../../tools/local-azure/entra";
import { freePorts } from "../../../tools/local-azure/machines/simulated/control-plane/static-pods";
import { allowHttp, withBlobs } from "../../../tools/local-azure/tests/support/arm/blobs";
import { storage, valid } from "../../../tools/local-azure/tests/support/arm/valid-resources";
import { FakeMachine } from "../../support/fake-machine";
import { serve } from "../../support/listen";
import { validSettings } from "../../support/sample";
import { testFolder } from "../../support/test-folder";
import { built, installed, output } from "../../support/tools";

const script = "/opt/zoned/etcd-snapshot.sh";
const name = /^\d{8}T\d{6}Z-\d+\.db$/;
const folder = "/var/lib/zoned/snapshots";

type Blobs = Parameters<Parameters<typeof withBlobs>[0]>[0];

let etcd: ChildProcess | undefined;
let data: string;
let endpoint: string;
/** What the script saves of it. */
let saved: { readonly blob: string } & Awaited<ReturnType<Blobs["download"]>>;

const etcdctl = (...args: string[]) =>
  execFileSync(built("etcdctl"), [`--endpoints=${endpoint}`, ...args.slice(0, -1)], {
    input: args.at(-1),
    stdio: ["pipe", "pipe", "pipe"],
  });

beforeAll(async () => {
  data = testFolder();
  const { etcdClient, etcdPeer } = await freePorts();
  endpoint = `http://127.0.0.1:${etcdClient}`;
  const peers = `http://127.0.0.1:${etcdPeer}`;
  etcd = spawn(
    built("etcd"),
    [
      `--data-dir=${join(data, "etcd")}`,
      `--listen-client-urls=${endpoint}`,
      `--advertise-client-urls=${endpoint}`,
      `--listen-peer-urls=${peers}`,
      `--initial-advertise-peer-urls=${peers}`,
      `--initial-cluster=default=${peers}`,
      "--unsafe-no-fsync",
    ],
    { stdio: "ignore" },
  );
  for (let tries = 100; ; tries--) {
    try {
      etcdctl("put", "it", "is there");
      break;
    } catch (error) {
      if (tries === 0) throw error;
      await sleep(100);
    }
  }
  await withContainer(async (blobs) => {
    const { code } = await machineIn(blobs).run(script, ["save"]);
    expect(code).toBe(0);
    const [blob = ""] = await namesIn(blobs);
    saved = { blob, ...(await blobs.download(blob)) };
  })();
});

afterAll(() => void etcd?.kill("SIGKILL"));

const programs = () => ({
  curl: `storage='&resource=https%3A%2F%2Fstorage.azure.com%2F'; case $* in
    *169.254.169.254*) [[ $* == *"--noproxy *"* && $* == *"--header Metadata:true"* && $* == *"$storage&client_id=the-client" &&
      -e $root/token ]] && cat "$root/token" ;;
    *comp=list*) exec ${installed("curl", "curl")} "\${@:1:$#-1}" "\${@: -1}$(cat "$root/pages" 2>/dev/null)" ;;
    *2379*) cat "$root/status" ;;
    *comp=blocklist*) stat --format %a "$root"/run/zoned-etcd-snapshot{,/authorization} >"$root/modes" ;;&
    *) exec ${installed("curl", "curl")} "$@" ;;
  esac`,
  // A container's paths are the machine's here. What a command says on its standard error comes after the rest.
  // An application has an etcd of its own, which is newer and comes first.
  crictl: `case $* in
    ps*) [[ $* == *" --label io.kubernetes.pod.namespace=kube-system "* ]] || echo of-an-application
      echo the-container ;;
    *of-an-application*) echo "open /etc/kubernetes/pki/etcd/ca.crt: no such file or directory" >&2; exit 1 ;;
    *"snapshot save"*) exec ${built("etcdctl")} --endpoints ${endpoint} snapshot save "$root\${@: -1}" ;;
    *"snapshot status"*) ${built("etcdutl")} --write-out json snapshot status "$root\${@: -1}" || exit
      echo; echo '{"level":"info","msg":"it is well"}' ;;
  esac`,
  kubectl: `all="$*"; part=\${all##*--field-manager zoned-etcd-snapshot-}; cat >"$root/report-\${part%% *}"
    echo configmap/zoned-etcd-snapshot serverside-applied`,
  kubeadm: "echo registry.k8s.io/etcd:3.6.8-0",
  ctr: `if [[ $* == *" mount "* ]]; then
    mkdir -p "\${@: -1}/usr/local/bin"; cp ${built("etcdutl")} "\${@: -1}/usr/local/bin"; fi`,
  docker: `case $1 in create) (($# > 2)) || { echo "Error response from daemon: no command specified" >&2; exit 1; }; echo made ;; cp) cp ${built("etcdutl")} "$3" ;; esac`,
});

const leading = { header: { member_id: "1" }, leader: "1", version: "3.6.8" };

interface Scene {
  readonly container?: boolean;
  readonly status?: object;
  readonly kubernetes?: string;
  /** From which the keys of its Secrets are derived. */
  readonly secret?: string;
  readonly cas?: string;
  readonly serviceAccounts?: string;
  readonly runtime?: string;
  readonly clientId?: string;
  readonly login?: Parameters<typeof snapshotFiles>[3];
}

function machineIn(blobs: Blobs | undefined, scene: Scene = {}): FakeMachine {
  const machine = new FakeMachine(programs());
  const container = valid.container[0];
  const etcdBackups = {
    every: "6h",
    ...(scene.container !== false && { container, endpoint: blobs?.endpoint }),
  };
  const settings = { ...validSettings, etcdBackups };
  for (const { path, content, mode } of snapshotFiles(
    settings,
    scene.clientId ?? "the-client",
    scene.secret ?? "the secret",
    scene.login,
  )) {
    machine.write(path, content, parseInt(mode, 8));
  }
  machine.write(
    "/etc/zoned/first-boot.env",
    `KUBERNETES_VERSION='${scene.kubernetes ?? "1.36.3"}'\nCONTAINER_RUNTIME='${scene.runtime ?? "docker"}'\n`,
  );
  machine.write("/etc/kubernetes/pki/sa.pub", scene.serviceAccounts ?? "the key");
  machine.write("/etc/kubernetes/pki/ca.crt", scene.cas ?? "the CA");
  machine.write("/status", JSON.stringify(scene.status ?? leading));
  machine.write("/var/lib/etcd/member/it", "");
  if (blobs) machine.write("/token", JSON.stringify({ access_token: blobs.token() }));
  return machine;
}

/** Has this done before what etcd's container is asked for. */
const damaged = (machine: FakeMachine, command: string, does: string): void =>
  machine.program("crictl", `[[ $* != *"${command}"* ]] || { ${does}; }\n${programs().crictl}`);

const namesIn = async (blobs: Blobs) => {
  const names: string[] = [];
  for await (const { name } of blobs.client().listBlobsFlat()) names.push(name);
  return names;
};

const withContainer = (use: (blobs: Blobs) => Promise<void>) => () =>
  withBlobs(async (blobs) => {
    await allowHttp(blobs.arm);
    await blobs.grant();
    await use(blobs);
  });

const withSnapshot = (use: (blobs: Blobs) => Promise<void>) =>
  withContainer(async (blobs) => {
    await blobs.upload(saved.blob, saved.content, saved.metadata);
    await use(blobs);
  });

/** Leads to an address by HTTP, but for the first request, which it refuses for the moment; returns where. */
async function stumbling(address: string): Promise<string> {
  const { origin, pathname } = new URL(address);
  let isUp = false;
  const at = await serve(async (request, reply) => {
    const { url = "", method, headers } = request;
    const body = await buffer(request);
    if (!isUp) {
      isUp = true;
      return reply.writeHead(503).end();
    }
    const { authorization = "", ...others } = headers as Record<string, string>;
    const sent = Object.entries(others).filter(([name]) => /^(x-ms-|content-type$)/.test(name));
    const answer = await fetch(`${origin}${url}`, {
      method,
      headers: { authorization, ...Object.fromEntries(sent) },
      ...(body.length > 0 && { body }),
    });
    return reply.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer()));
  });
  return `${at}${pathname === "/" ? "" : pathname}`;
}

const reportOf = (machine: FakeMachine, part: string) =>
  JSON.parse(machine.read(`/report-${part}`)).data;
const last = (text: string): string => text.trim().split("\n").at(-1)!;
const fileOf = (machine: FakeMachine) => join(machine.root, "snapshot.db");
const fetchBy = (machine: FakeMachine, wanted = "latest") =>
  machine.run(script, ["fetch", wanted, fileOf(machine)]);

describe("on a machine that carries no identity", () => {
  const issuer = "https://oidcabc.blob.core.windows.net/issuer";
  const { privateKey, publicKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  const documents: Readonly<Record<string, string>> = {
    [`${issuer}/.well-known/openid-configuration`]: discoveryDocument(issuer),
    [keysUrl(issuer)]: keysDocument(publicKey),
  };

  /** With an Entra that reads the issuer's documents; `machine` has the key of service accounts and no token. */
  const withEntra = (use: (blobs: Blobs, machine: () => FakeMachine) => Promise<void>) =>
    withContainer(async (blobs) => {
      const read = async (url: string) => JSON.parse(documents[url]!);
      const entra = await new TokenService(blobs.arm, read).serve(0);
      // As a service does now and then.
      const login = await stumbling(`http://127.0.0.1:${entra.port}`);
      const machine = () => {
        const made = machineIn(blobs, {
          login: { issuer, tenantId: account.tenantId },
          clientId: blobs.identity.clientId,
        });
        made.removeFile("/token");
        made.write("/etc/kubernetes/pki/sa.key", privateKey, 0o600);
        made.program(
          "curl",
          `case $* in *https://login.microsoftonline.com/*)
            stat --format %a "$root/run/zoned-etcd-snapshot/assertion" >"$root/assertion-mode"
            exec ${installed("curl", "curl")} "\${@/#https:\\/\\/login.microsoftonline.com/${login}}" ;;
          esac
          ${programs().curl}`,
        );
        return made;
      };
      try {
        await use(blobs, machine);
      } finally {
        await entra.close();
      }
    })();
  const admit = ({ arm, identity }: Blobs) =>
    arm.put(`${identity.resourceId}/federatedIdentityCredentials/snapshots`, {
      ...{ issuer, audiences: ["api://AzureADTokenExchange"] },
      subject: "system:serviceaccount:kube-system:zoned-etcd-snapshot",
    });

  it("a snapshot is saved and fetched by tokens of a service account that it signs itself", () =>
    withEntra(async (blobs, machine) => {
      await admit(blobs);
      const [saving, fetching] = [machine(), machine()];

      expect(await saving.run(script, ["save"])).toMatchObject({ code: 0 });
      expect(await fetchBy(fetching)).toMatchObject({ code: 0 });

      expect(await namesIn(blobs)).toHaveLength(1);
      // What processes are called with is everybody's to read.
      expect(saving.read("/assertion-mode")).toBe("600\n");
      expect(saving.callsOf("curl").join("\n")).not.toContain("eyJ");
    }));

  it("it says what Entra refuses", () =>
    withEntra(async (_, machine) => {
      const { code, stderr } = await machine().run(script, ["save"]);

      expect(code).toBe(1);
      expect(last(stderr)).toMatch(
        /does not take \S+:zoned-etcd-snapshot for .* federated credentials, .*AADSTS700211: .*issuer/,
      );
    }));
});

describe("a snapshot of etcd", () => {
  it("is left to the member that leads, but for one that is about to be changed", async () => {
    const follower = machineIn(undefined, {
      container: false,
      status: { ...leading, leader: "2" },
    });
    expect((await follower.run(script, ["save"])).code).toBe(0);
    expect(follower.has(folder)).toBe(false);
    expect((await follower.run(script, ["save", "any"])).code).toBe(0);
    expect(readdirSync(join(follower.root, folder))).toEqual([expect.stringMatching(name)]);
  });

  it("lies in a folder of the machine without a container, with the four before it, and may be large", async () => {
    const machine = machineIn(undefined, { container: false });
    for (const day of [1, 2, 3, 4, 5]) machine.write(`${folder}/2025010${day}T000000Z-1.db`, "");

    expect((await machine.run(script, ["save"])).code).toBe(0);

    const files = readdirSync(join(machine.root, folder)).sort();
    expect([files.length, files[0]]).toEqual([5, "20250102T000000Z-1.db"]);
    expect(reportOf(machine, "result").where).toMatch(/^folder \/var\/lib\/zoned\/snapshots on /);

    // It has time for a large one: each limit is below that of what it runs in.
    const numbers = (text: string, flag: string) =>
      [...text.matchAll(new RegExp(`${flag}[= ](\\d+)`, "g"))].map(([, number]) => Number(number));
    const calls = machine.callsOf("crictl").join("\n");
    const save = Number(/--command-timeout (\d+)m /.exec(calls)?.[1]);
    const inContainer = numbers(calls, "--timeout");
    const ofStorage = Math.max(...numbers(machine.read(script), "--max-time"));
    const timer = machine.read("/etc/systemd/system/zoned-etcd-snapshot.service");
    const [ofUnit = 0] = numbers(timer, "TimeoutStartSec");
    // Ten minutes for 8 GiB, by a disk of 15 MB/s.
    expect(save).toBeGreaterThanOrEqual(10);
    expect(inContainer).toHaveLength(2);
    for (const seconds of [...inContainer, ofStorage]) {
      expect(seconds).toBeGreaterThan(save * 60);
      expect(seconds).toBeLessThan((ofUnit * 3600) / 2);
    }
    // The bootstrap step, too, gives it that time.
    const ofStep = (does: string) =>
      Number(new RegExp(`step "snapshot" (\\d+) \\d ${does}`).exec(bootstrapText())![1]);
    expect(ofStep("save_snapshot")).toBeGreaterThan(Math.max(...inContainer));
    expect(ofStep("fetch_snapshot")).toBeGreaterThan(ofStorage);
  });

  it("is not fetched from such a folder, which goes with its machine, and the message names what is missing", async () => {
    const machine = machineIn(undefined, { container: false });
    machine.write(`${folder}/20250101T000000Z-1.db`, "");

    const { code, stderr } = await fetchBy(machine);

    expect([code, last(stderr)]).toEqual([
      1,
      "there is no container to restore from (zoned:etcdBackups)",
    ]);
  });

  it("is taken by one run at a time", async () => {
    const machine = machineIn(undefined, { container: false });
    const { crictl } = programs();
    machine.program(
      "crictl",
      `[[ $* != *"snapshot save"* ]] || mkdir "$root/busy" || touch "$root/overlap"
      (${crictl})
      code=$?
      [[ $* != *"snapshot save"* ]] || rmdir "$root/busy"
      exit "$code"`,
    );

    const both = await Promise.all([1, 2].map(() => machine.run(script, ["save", "any"])));

    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(machine.has("/overlap")).toBe(false);
  });

  it("stays on the machine where storage refuses it, alone, until one is uploaded, and the cluster learns why", () =>
    withBlobs(async (blobs) => {
      await allowHttp(blobs.arm);
      const machine = machineIn(blobs);
      for (const day of [1, 2, 3, 4, 5]) machine.write(`${folder}/2025010${day}T000000Z-1.db`, "");
      const { code, stderr } = await machine.run(script, ["save"]);

      expect(code).toBe(1);
      expect(last(stderr)).toContain(
        "it needs the role Storage Blob Data Contributor on the container",
      );
      const files = () => readdirSync(join(machine.root, folder));
      expect(files()).toEqual([expect.stringMatching(/^(?!2025)/)]);
      expect(reportOf(machine, "failure").error).toContain(last(stderr));
      expect(machine.has("/report-result")).toBe(false);

      await blobs.grant();
      expect((await machine.run(script, ["save"])).code).toBe(0);
      expect(files()).toEqual([]);
    }));

  it.each([
    [
      "there is no token",
      (machine: FakeMachine) => machine.removeFile("/token"),
      "az vm identity show",
    ],
    [
      "etcd does not answer",
      (machine: FakeMachine) => machine.removeFile("/status"),
      "etcd of this machine does not answer",
    ],
    [
      "etcd does not run",
      (machine: FakeMachine) => machine.program("crictl", ""),
      "no container of etcd runs on this machine",
    ],
    [
      "the container is behind a proxy that does not answer",
      (machine: FakeMachine) =>
        machine.write("/etc/zoned/proxy.env", "http_proxy='http://127.0.0.1:9'\n"),
      "does not answer: look at its name",
    ],
    [
      "etcdutl does not take what etcd has saved",
      (machine: FakeMachine) => damaged(machine, "snapshot status", "exit 1"),
      "etcdutl does not find the snapshot to be whole",
    ],
    [
      "what etcd has saved is not whole, and etcdutl does not see it",
      (machine: FakeMachine) =>
        damaged(machine, "snapshot status", 'truncate --size=-1 "$root${@: -1}"'),
      "the snapshot is not whole, though etcdctl said so",
    ],
  ])("says so when %s", async (_, change, says) =>
    withContainer(async (blobs) => {
      const machine = machineIn(blobs);
      change(machine);
      const { code, stderr } = await machine.run(script, ["save"]);
      expect(code).not.toBe(0);
      expect(last(stderr)).toContain(says);
      expect(await namesIn(blobs)).toEqual([]);
      expect(machine.has("/var/lib/etcd/zoned-snapshot.db")).toBe(false);
    })(),
  );

  it("is saved by a token of a metadata service that is being updated at first", () =>
    withContainer(async (blobs) => {
      const answers = [410, 404, 200];
      const service = await serve((_, reply) => {
        reply
          .writeHead(answers.shift() ?? 500)
          .end(JSON.stringify({ access_token: blobs.token() }));
      });
      const machine = machineIn(blobs);
      machine.program(
        "curl",
        `[[ $* != *169.254.169.254* ]] || exec ${installed("curl", "curl")} "$@" --connect-to ::${new URL(service).host}
        ${programs().curl}`,
      );

      expect(await machine.run(script, ["save"])).toMatchObject({ code: 0 });

      expect(await namesIn(blobs)).toHaveLength(1);
      // It may be for 70 seconds, and curl waits 1 s, 2 s, 4 s and so on.
      const [, tries] = /--retry (\d+) .*169\.254/.exec(machine.callsOf("curl").join("\n"))!;
      expect(2 ** Number(tries) - 1).toBeGreaterThan(70);
    })());

  it("is saved where storage stumbles, as a service does now and then", () =>
    withContainer(async (blobs) => {
      const endpoint = await stumbling(blobs.endpoint);

      expect(await machineIn({ ...blobs, endpoint }).run(script, ["save"])).toMatchObject({
        code: 0,
      });

      expect(await namesIn(blobs)).toHaveLength(1);
    })());

  it("that fails says why in its last line, also where none was saved before and the API does not answer", async () => {
    const machine = machineIn(undefined, { container: false });
    machine.program("crictl", "");
    machine.program(
      "kubectl",
      `${programs().kubectl}; echo "The connection to the server was refused" >&2; exit 1`,
    );

    const { code, stderr } = await machine.run(script, ["save"]);

    const why = "no container of etcd runs on this machine";
    expect([code, last(stderr)]).toEqual([1, why]);
    expect(stderr).toContain("The connection to the server was refused");
    expect(reportOf(machine, "failure").error).toContain(why);
  });

  it(
    "is of the Kubernetes that runs on the machine, also where another one is about to be installed",
    withContainer(async (blobs) => {
      const machine = machineIn(blobs, { kubernetes: "1.37.0" });
      machine.write(
        "/etc/kubernetes/manifests/kube-apiserver.yaml",
        "spec:\n  containers:\n  - command:\n    - kube-apiserver\n    image: registry.k8s.io/kube-apiserver:v1.36.3\n    imagePullPolicy: IfNotPresent\n",
      );

      expect((await machine.run(script, ["save", "any"])).code).toBe(0);

      const [blob = ""] = await namesIn(blobs);
      expect((await blobs.download(blob)).metadata).toMatchObject({ kubernetes: "1.36.3" });
    }),
  );

  it(
    "is fetched by name or as the newest, whole, with the program that restores it",
    withSnapshot(async (blobs) => {
      const [, name] = saved.blob.split("/");
      await blobs.upload("zoned-test/notes.txt", "x");

      for (const [wanted, runtime] of [
        ["latest", "docker"],
        [name, "cri-dockerd"],
      ]) {
        const machine = machineIn(blobs, { runtime });
        const etcdutl = join(machine.root, "etcdutl");
        const { code, stderr } = await fetchBy(machine, wanted);
        expect([code, stderr]).toEqual([0, expect.stringContaining(`fetching snapshot ${name}`)]);
        expect((await machine.run(script, ["etcdutl", etcdutl])).code).toBe(0);
        // Nothing of what it was taken from is left.
        expect(machine.callsOf(runtime === "cri-dockerd" ? "docker" : "ctr").at(-1)).toMatch(
          /^rm made$| images unmount --rm \/run\/zoned-etcd-snapshot\/image$/,
        );
        const restored = join(machine.root, "restored");
        output(etcdutl, ["snapshot", "restore", fileOf(machine), "--data-dir", restored]);
        expect(readdirSync(restored)).toEqual(["member"]);
      }
    }),
  );

  it(
    "is the newest of all, whatever the pages and the order in which storage lists them",
    withSnapshot(async (blobs) => {
      for (const day of [1, 2, 3]) await blobs.upload(`zoned-test/2025010${day}T000000Z-1.db`, "x");
      const machine = machineIn(blobs);
      machine.write("/pages", "&maxresults=2");
      const { curl } = programs();
      const backwards = `import re, sys
text = open(sys.argv[1]).read()
blobs = re.findall("<Blob>.*?</Blob>", text, re.S)
open(sys.argv[1], "w").write(text.replace("".join(blobs), "".join(reversed(blobs))))`;
      machine.program(
        "curl",
        `if [[ $* == *comp=list* ]]; then
          (${curl})
          python3 -c '${backwards}' "$root/run/zoned-etcd-snapshot/answer"
          exit
        fi
        ${curl}`,
      );

      const { stderr } = await fetchBy(machine);

      expect(machine.callsOf("curl").filter((call) => call.includes("comp=list"))).toHaveLength(2);
      expect(stderr).toContain(`fetching snapshot ${saved.blob.split("/")[1]}`);
    }),
  );

  it.each<[string, Scene]>([
    [
      "the cluster had other CAs, another key of service accounts and an older minor of Kubernetes",
      { cas: "the CA, and another one", serviceAccounts: "the key before", kubernetes: "1.37.0" },
    ],
    ["it had another patch of Kubernetes", { kubernetes: "1.36.2" }],
  ])("is fetched from a time in which %s", async (_, scene) =>
    withSnapshot(async (blobs) => {
      const machine = machineIn(blobs, scene);
      const { code, stderr } = await fetchBy(machine);

      expect([code, stderr]).toEqual([0, expect.stringContaining("fetching snapshot")]);
    })(),
  );

  it.each<[string, Scene, string, (blobs: Blobs) => Promise<unknown>, RegExp]>([
    [
      "there is none",
      {},
      "latest",
      async ({ arm, grant }) => {
        await grant(storage(""));
        await arm.delete(valid.container[0]);
        await arm.put(...valid.container);
      },
      /^there is no snapshot of cluster zoned-test in \S+\/etcd: .+config set reinitialize\)$/,
    ],
    [
      "there is no container",
      {},
      "latest",
      async ({ arm, grant }) => {
        await grant(storage(""));
        await arm.delete(valid.container[0]);
      },
      /^there is no container \S+\/etcd: make it, or name another \(zoned:etcdBackups\)$/,
    ],
    [
      "there is none of that name",
      {},
      "20250101T000000Z-1.db",
      async (blobs) => {
        for (const day of [2, 3, 4, 5, 6])
          await blobs.upload(`zoned-test/2025010${day}T000000Z-1.db`, "x");
      },
      /^there is no snapshot zoned-test\/20250101T000000Z-1\.db in \S+; the newest are: 20250103T\S+ 20250104T\S+ 20250105T\S+ 20250106T\S+ \d{8}T\S+\.db\. .+restoreFrom$/,
    ],
    [
      "it is of another cluster",
      { secret: "another secret" },
      "latest",
      async () => undefined,
      /is of another cluster named zoned-test, one whose Secrets are encrypted by other keys: .+restoreFrom/,
    ],
    [
      "it is of a newer Kubernetes",
      { kubernetes: "1.35.9" },
      "latest",
      async () => undefined,
      /is of Kubernetes 1\.36\.3, newer than this cluster's 1\.35\.9.+config set kubernetesVersion 1\.36\.3/,
    ],
    [
      "it is of a newer minor of etcd",
      {},
      "latest",
      async (blobs) =>
        blobs.upload(saved.blob, saved.content, { ...saved.metadata, etcd: "3.7.0" }),
      /is of etcd 3\.7\.0, newer than the 3\.6\.8-0 of this cluster's Kubernetes 1\.36\.3.+set kubernetesVersion/,
    ],
    [
      "it is cut short",
      {},
      "latest",
      async (blobs) => blobs.upload(saved.blob, saved.content.subarray(0, 10_000), saved.metadata),
      /is damaged or not whole \(10000 bytes\): name an older one/,
    ],
  ])("is refused when %s", async (_, scene, wanted, change, says) =>
    withSnapshot(async (blobs) => {
      await change(blobs);
      const machine = machineIn(blobs, scene);
      const { code, stderr } = await fetchBy(machine, wanted);
      expect(code).toBe(1);
      expect(last(stderr)).toMatch(says);
    })(),
  );

  // Last, since what the others save need be no larger than one block takes.
  it(
    "is saved by the member that leads, in blocks, with what it is of, and said to the cluster",
    withContainer(async (blobs) => {
      const value = btoa("x".repeat(1.3e6));
      for (const index of Array(28).keys()) {
        const body = JSON.stringify({ key: btoa(`large-${index}`), value });
        expect((await fetch(`${endpoint}/v3/kv/put`, { method: "POST", body })).ok).toBe(true);
      }
      const machine = machineIn(blobs);
      const { code, stderr } = await machine.run(script, ["save"]);
      expect([code, stderr]).toEqual([0, expect.stringMatching(/saved \S+, \d+ bytes$/m)]);

      const [blob = "", ...more] = await namesIn(blobs);
      expect([blob.split("/")[0], more]).toEqual(["zoned-test", []]);
      expect(blob.split("/")[1]).toMatch(name);
      expect(machine.callsOf("curl").filter((call) => call.includes("comp=block&"))).toHaveLength(
        2,
      );
      const { metadata, content } = await blobs.download(blob);
      expect(metadata).toEqual({
        cluster: expect.stringMatching(/^[0-9a-f]{64}$/),
        kubernetes: "1.36.3",
        etcd: "3.6.8",
        machine: expect.any(String),
      });
      expect(reportOf(machine, "result")).toEqual({
        where: `${blobs.endpoint}/etcd`,
        machine: metadata!["machine"],
        name: blob.split("/")[1],
        bytes: `${content.length}`,
        revision: expect.stringMatching(/^\d+$/),
        etcd: "3.6.8",
        every: "6h",
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      });
      expect(reportOf(machine, "failure")).toEqual({});
      expect(machine.has(`${folder}/${blob.split("/")[1]}`)).toBe(false);
      expect(machine.has("/var/lib/etcd/zoned-snapshot.db")).toBe(false);
      // What processes are called with is everybody's to read.
      expect(machine.read("/modes")).toBe("700\n600\n");
      expect(machine.has("/run/zoned-etcd-snapshot")).toBe(false);
      expect(machine.callsOf("curl").join("\n")).not.toContain(blobs.token());
    }),
  );
});

it.each(["", ".part"])(
  "takes away zoned-snapshot.db%s, which a killed run has left, before it saves or leaves that to another member, for etcd needs that room too",
  async (part) => {
    for (const leader of ["1", "2"]) {
      const machine = machineIn(undefined, { container: false, status: { ...leading, leader } });
      const left = `/var/lib/etcd/zoned-snapshot.db${part}`;
      machine.write(left, "half of one");
      damaged(machine, "snapshot save", `[[ ! -e $root${left} ]] || exit 1`);

      expect((await machine.run(script, ["save"])).code).toBe(0);
      expect(machine.has(left)).toBe(false);
    }
  },
);
