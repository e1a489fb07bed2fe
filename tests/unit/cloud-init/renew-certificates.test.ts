import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { cpSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";

import { parse } from "yaml";

import { encryptionAlgorithm } from "../../../components/key-algorithm";
import { kubeadmFiles } from "../../../components/kubeadm/kubeadm";
import {
  renewalFailed,
  renewalFiles,
  renewedBelowDays,
  validUntil,
} from "../../../components/machine/timers";
import { machinesOf } from "../../../components/settings/topology";
import { checkout } from "../../../tools/shared/checkout";
import { quickAlgorithm } from "../../support/api-server";
import { listedControlPlane } from "../../support/bootstrapped-machine";
import { FakeMachine, realKubeadm } from "../../support/fake-machine";
import { specOf, validSettings } from "../../support/sample";
import { testFolder } from "../../support/test-folder";
import { installed, type Outcome } from "../../support/tools";
import { asRoot, describeUnless } from "../../support/unless";

const [controlPlane] = machinesOf(validSettings);
const { name } = controlPlane!;
const peer = "zoned-test-cp-2";
const components = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/** Nodes and static pods of the other control plane, of whose pods one may be sick. */
const peers = (sick?: string) => ({ items: listedControlPlane(peer, [`${sick}-${peer}`]) });

const members = {
  members: [1, 2].map((n) => ({
    ID: `${n}`,
    name: `zoned-test-cp-${n}`,
    peerURLs: [`https://172.16.${n}.4:2380`],
    clientURLs: [`https://172.16.${n}.4:2379`],
  })),
};

const programs = () => ({
  // What is in the cluster's ConfigMap stands in a file here.
  kubeadm: `[[ $1 != certs ]] || set -- "$@" --config "$root/cluster.yaml"\n${realKubeadm()}`,
  kubectl: `cat "$root/objects"`,
  curl: `case $* in
    *PATCH*zoned-maintenance) echo "$*" >>"$root/turned"; printf '\\n200' ;;
    *zoned-maintenance) cat "$root/turns"; printf '\\n200' ;;
    *PATCH*) echo "$*" >>"$root/patches" ;;
    *2379/health*) echo '{"health":"true"}' ;;
    *maintenance/alarm*) echo '{}' ;;
    *member/list*) echo '${JSON.stringify(members)}' ;;
    *readyz*|*2381/health*) [[ ! -e $root/sick ]] ;;
    *10250/pods*) echo asked >>"$root/asked"
      for manifest in "$root"/etc/kubernetes/manifests/*.yaml; do
        [[ $manifest != */"$(cat "$root/stuck" 2>/dev/null)".yaml ]] || continue
        jq --null-input --arg name "$(basename "$manifest" .yaml)-${name}" \\
          --arg stamp "$(sed -nE 's/^ +zoned.certificates-renewed: "(.*)"/\\1/p' "$manifest")" \\
          '{metadata: {name: $name, annotations: {"zoned/certificates-renewed": $stamp}},
            status: {conditions: [{type: "Ready", status: "True"}]}}'
      done | jq --slurp '{items: .}' ;;
  esac`,
});

/** A control plane to be: it has no certificates yet. */
function controlPlaneMachine(): FakeMachine {
  const machine = new FakeMachine(programs());
  machine.write("/objects", JSON.stringify(peers()));
  machine.write("/patches", "");
  machine.write("/turns", "{}");
  machine.write("/run/it", "");
  machine.ship("bootstrap.sh", "/opt/zoned/bootstrap.sh");
  machine.ship("renew-certificates.sh", "/renew.sh");
  machine.write(
    "/var/lib/zoned/variables",
    `machine=${name}\naddress=172.16.1.4\nawaits_ready=yes\napi_name=it\napi_port=6443\n`,
  );
  return machine;
}

describeUnless(asRoot)("the renewal of a control plane's certificates", () => {
  let machine: FakeMachine;

  const cluster = (validity: string): string =>
    kubeadmFiles(specOf(), controlPlane!)
      .find(({ path }) => path === "/etc/zoned/kubeadm-init.yaml")!
      .content.replace("\nnetworking:", `\ncertificateValidityPeriod: ${validity}\nnetworking:`)
      .replace(encryptionAlgorithm, quickAlgorithm);

  /** What kubeadm makes, once for all machines. */
  const made = testFolder();

  /** A control plane whose certificates end in two hours, as kubeadm makes one. */
  async function makeControlPlane(): Promise<void> {
    if (readdirSync(made).length > 0) cpSync(made, kubernetes(), { recursive: true });
    else {
      machine.write("/cluster.yaml", cluster("2h"));
      for (const phase of ["certs all", "kubeconfig all", "etcd local", "control-plane all"]) {
        const config = ["--config", join(machine.root, "cluster.yaml")];
        machine.write(
          "/phase",
          `kubeadm init phase ${[...phase.split(" "), ...config].join(" ")}\n`,
        );
        expect(await machine.run("/phase")).toMatchObject({ code: 0 });
      }
      cpSync(kubernetes(), made, { recursive: true });
    }
    machine.write("/cluster.yaml", cluster("8760h"));
    machine.forgetCalls();
  }

  /** Without what kubeadm itself warns of: that IPVS ends one day. */
  const renew = async () => {
    const { stderr, ...ended } = await machine.run("/renew.sh", [], { ZONED_LIMIT: "2" });
    return { ...ended, stderr: stderr.replace(/^W\d+ .* kubeproxy\.go:.*\n/gm, "") };
  };

  const annotated = (annotation: string): string[] =>
    machine
      .read("/patches")
      .split("\n")
      .filter((line) => line.includes(annotation))
      .map((line) => /--data (.*?) https:/.exec(line)?.[1] ?? line);

  const kubernetes = () => join(machine.root, "etc/kubernetes");

  /** All that is on the machine below /etc/kubernetes, by path. */
  const files = (): Map<string, string> =>
    new Map(
      readdirSync(kubernetes(), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .map((path) => [path.slice(kubernetes().length + 1), readFileSync(path, "utf8")]),
    );

  const daysLeft = (certificate: string | Buffer): number =>
    (new X509Certificate(certificate).validToDate.getTime() - Date.now()) / 86_400_000;

  const clientOf = (kubeconfig: string): Buffer => {
    const { users } = parse(files().get(kubeconfig)!);
    return Buffer.from(users[0].user["client-certificate-data"], "base64");
  };

  describe("that is due", () => {
    let before: Map<string, string>;
    let outcome: Outcome;

    beforeAll(async () => {
      machine = controlPlaneMachine();
      await makeControlPlane();
      machine.program(
        "curl",
        `turns='{}'; [[ ! -e $root/turned ]] || turns='{"data": {"${name}": "renewal 2999-01-01T00:00:00Z"}}'\n` +
          programs().curl.replace('cat "$root/turns";', 'echo "$turns";'),
      );
      before = files();
      outcome = await renew();
    });

    it("gives every certificate that kubeadm made another year, and touches nothing else, nor lets others read it", () => {
      expect(outcome).toMatchObject({ code: 0, stderr: "" });
      const after = files();
      const changed = [...after.keys()].filter((path) => after.get(path) !== before.get(path));
      const pairs = ["apiserver", "apiserver-etcd-client", "apiserver-kubelet-client"];
      const ofEtcd = ["healthcheck-client", "peer", "server"].map((stem) => `etcd/${stem}`);
      const renewed = [...pairs, ...ofEtcd, "front-proxy-client"].map((stem) => `pki/${stem}`);
      const kubeconfigs = ["admin", "controller-manager", "scheduler", "super-admin"].map(
        (stem) => `${stem}.conf`,
      );
      const manifests = components.map((component) => `manifests/${component}.yaml`);
      const readable = changed.filter((path) => statSync(join(kubernetes(), path)).mode & 0o077);
      expect(readable.filter((path) => !path.endsWith(".crt"))).toEqual([]);
      expect(changed.sort()).toEqual(
        [
          ...renewed.flatMap((stem) => [`${stem}.crt`, `${stem}.key`]),
          ...kubeconfigs,
          ...manifests,
        ].sort(),
      );
      for (const stem of renewed) expect(daysLeft(after.get(`${stem}.crt`)!)).toBeGreaterThan(360);
      for (const file of kubeconfigs) expect(daysLeft(clientOf(file))).toBeGreaterThan(360);
      expect([...after.keys()].sort()).toEqual([...before.keys()].sort());
      const ca = new X509Certificate(after.get("pki/ca.crt")!);
      expect(new X509Certificate(after.get("pki/apiserver.crt")!).verify(ca.publicKey)).toBe(true);
    });

    it("restarts the four static pods by nothing but an annotation, one after another", () => {
      expect(outcome.stdout.match(/^.+(?=: restarted$)/gm)).toEqual(components);
      for (const component of components) {
        const path = `manifests/${component}.yaml`;
        const was = parse(before.get(path)!);
        const is = parse(files().get(path)!);
        const { "zoned/certificates-renewed": stamp, ...annotations } = is.metadata.annotations;
        expect(stamp).toMatch(/^\d{4}-/);
        expect(annotations).toEqual(was.metadata.annotations ?? {});
        for (const one of [was, is]) delete one.metadata.annotations;
        expect(is).toEqual(was);
      }
    });

    it("has no other machine go down meanwhile, and says when it has ended", () => {
      const turns = machine.read("/turned").match(/(?<="data":).*?(?=})/g);
      expect(turns).toEqual([
        expect.stringMatching(`{"${name}":"renewal \\d{4}-`),
        `{"${name}":null`,
      ]);
    });

    it("says on the Node until when they are valid, and that nothing failed", () => {
      const [said] = annotated(validUntil);
      const until = JSON.parse(said!).metadata.annotations[validUntil];
      const ends = [...files()]
        .filter(([path]) => path.endsWith(".crt") && !path.endsWith("ca.crt"))
        .map(([, text]) => new X509Certificate(text).validToDate.getTime());
      expect(Date.parse(until)).toBe(Math.min(...ends));
      expect(JSON.parse(annotated(renewalFailed)[0]!)).toEqual({
        metadata: { annotations: { [renewalFailed]: null } },
      });
    });

    it("does nothing a second time, since more than 60 days are left", async () => {
      const once = files();
      machine.forgetCalls();

      expect(await renew()).toMatchObject({ code: 0, stderr: "" });

      expect(files()).toEqual(once);
      // Else the next one, a year from now, would restart nothing.
      expect(machine.has("/var/lib/zoned/certificates-renewal")).toBe(false);
      expect(machine.callsOf("kubeadm").join()).not.toContain("renew");
      const script = readFileSync(join(checkout, "cloud-init/renew-certificates.sh"), "utf8");
      expect(script).toContain(`least_days=${renewedBelowDays}\n`);
    });
  });

  describe("otherwise", () => {
    beforeEach(() => void (machine = controlPlaneMachine()));

    it("renews again what has been renewed before, when that ends", async () => {
      await makeControlPlane();
      machine.write("/cluster.yaml", cluster("3h"));
      await renew();
      machine.write("/cluster.yaml", cluster("8760h"));

      expect(await renew()).toMatchObject({ code: 0, stderr: "" });

      expect(daysLeft(files().get("pki/apiserver.crt")!)).toBeGreaterThan(360);
      const text = files().get("manifests/kube-scheduler.yaml")!;
      expect(text.match(/zoned\/certificates-renewed/g)).toHaveLength(1);
    });

    it("has ended well also where it cannot say so to the other machines, for whom its turn ends by itself", async () => {
      await makeControlPlane();
      const own = { data: { [name]: "renewal 2999-01-01T00:00:00Z" } };
      machine.write("/turns", JSON.stringify(own));
      machine.program(
        "curl",
        `[[ $* != *PATCH*'"${name}":null'*zoned-maintenance ]] || { printf '\\n500'; exit; }\n${programs().curl}`,
      );

      expect((await renew()).code).toBe(0);

      expect(annotated(renewalFailed).join()).toContain(`"${renewalFailed}": null`);
    });

    it("touches nothing while another control plane is not well, and says so on the Node", async () => {
      await makeControlPlane();
      machine.write("/objects", JSON.stringify(peers("etcd")));
      const before = files();

      const { code, stderr } = await renew();

      expect(code).toBe(1);
      expect(stderr).toBe(
        "not renewing certificates, since another control plane is not well: " +
          `static pod etcd-${peer} is not Ready\n`,
      );
      expect(files()).toEqual(before);
      // What repairs that one may be an update, which waits for no turn of this machine.
      expect(machine.has("/turned")).toBe(false);
      expect(annotated(renewalFailed).join()).toContain(`static pod etcd-${peer} is not Ready`);
    });

    const isDown = (who: string, why: string) => ({
      file: "turns",
      has: JSON.stringify({ data: { [who]: `${why} 2999-01-01T00:00:00Z` } }),
      says: `: ${who} is down for ${why}, at most until 2999-01-01T00:00:00Z`,
    });
    it.each([
      {
        while: "another machine is down, for an event of Azure or a reboot",
        ...isDown("zoned-test-workers-1", "Redeploy"),
      },
      { while: "an update takes this one down", ...isDown(name, "update") },
      {
        while: "this machine has an event of its own, whose turn it would take",
        file: "var/lib/zoned/maintenance",
        has: "602D9444 acknowledged\n",
        says: `, since an event of Azure or a reboot of ${name} is under way`,
      },
      {
        while: "it is not well itself",
        file: "sick",
        has: "",
        says: ", since this control plane is not well",
      },
    ])("touches nothing of a control plane while $while", async ({ file, has, says }) => {
      await makeControlPlane();
      machine.write(`/${file}`, has);
      const before = files();

      const { code, stderr } = await renew();

      expect([code, stderr]).toEqual([1, `not renewing certificates${says}\n`]);
      expect(files()).toEqual(before);
      expect(machine.has("/turned")).toBe(false);
    });

    it("leaves the API server alone when etcd does not come back, and goes on from there in its next turn", async () => {
      await makeControlPlane();
      machine.write("/stuck", "etcd");
      const before = files();

      const { code, stderr } = await renew();

      expect(code).toBe(1);
      expect(stderr).toBe("etcd has new certificates and is not well 2 s after its restart\n");
      const api = "manifests/kube-apiserver.yaml";
      expect(files().get(api)).toBe(before.get(api));
      const half = files();
      machine.removeFile("/stuck");
      machine.forgetCalls();
      // Its turn has ended by itself since.
      machine.removeFile("/turned");
      const down = { data: { "zoned-test-workers-1": "Redeploy 2999-01-01T00:00:00Z" } };
      machine.write("/turns", JSON.stringify(down));
      expect((await renew()).stderr).toContain("zoned-test-workers-1 is down for Redeploy");
      machine.write("/turns", "{}");
      machine.write("/objects", JSON.stringify(peers("etcd")));
      expect((await renew()).stderr).toContain("another control plane is not well");
      expect([files(), machine.has("/turned")]).toEqual([half, false]);
      machine.write("/objects", JSON.stringify(peers()));
      expect((await renew()).stdout.match(/^.+(?=: restarted$)/gm)).toEqual(components);
      expect(machine.callsOf("kubeadm").join()).not.toContain("renew");
      expect(files().get("pki/apiserver.crt")).toBe(half.get("pki/apiserver.crt"));
      expect(files().get("manifests/etcd.yaml")).toBe(half.get("manifests/etcd.yaml"));
      expect(machine.read("/turned")).toContain(`{"${name}":"renewal `);
    });

    it("waits for a bootstrap step that is at work, which configures the same programs, and fails where kubeadm does", async () => {
      await makeControlPlane();
      machine.write(
        "/step.sh",
        'exec 9>"$ZONED_ROOT/run/zoned-bootstrap.lock"; flock 9; touch "$ZONED_ROOT/begun"; /bin/sleep 1; touch "$ZONED_ROOT/ended"',
      );
      machine.program(
        "kubeadm",
        `[[ -e $root/ended ]] || exit 3; [[ $2 != renew ]] || exit 4\n${programs().kubeadm}`,
      );
      const step = machine.run("/step.sh");
      while (!machine.has("/begun")) await setTimeout(10);

      expect((await renew()).code).toBe(1);

      expect(annotated(renewalFailed).join()).toContain("exit code 4 of: kubeadm certs renew all");
      await step;
    });

    it("restarts nothing more when another control plane is not well any more", async () => {
      await makeControlPlane();
      machine.write("/objects-later", JSON.stringify(peers("etcd")));
      machine.program("kubectl", 'cat "$root/objects$([[ ! -e $root/asked ]] || echo -later)"');

      const { stdout, stderr } = await renew();

      expect(stdout.match(/^.+(?=: restarted$)/gm)).toEqual(["etcd"]);
      expect(stderr).toMatch(/^not restarting kube-apiserver, since another control plane is not/);
    });
  });
});

const hour = 3_600_000;
const year = 365 * 24 * hour;
const begin = Date.parse("2026-11-26T09:00:00Z");
const end = begin + 3 * year;

/** Hours in which a control plane's timer elapses, if its machine is on, by the clock of systemd. */
function turnsOf(position: number): Set<number> {
  const { content } = renewalFiles(position).find(({ path }) => path.endsWith(".timer"))!;
  const [, calendar] = /OnCalendar=(.+)/.exec(content)!;
  const said = execFileSync(
    installed("systemd-analyze", "systemd"),
    ["calendar", "--base-time=2026-11-26", "--iterations=4000", calendar!],
    { encoding: "utf8", env: { TZ: "UTC" } },
  );
  const times = said.matchAll(/: \w{3} (\d{4}-\d\d-\d\d) (\d\d):00:00 UTC/g);
  return new Set([...times].map(([, date, hours]) => Date.parse(`${date}T${hours}:00:00Z`)));
}

describe("the timers of control planes", () => {
  /** Of five control planes. */
  let turns: readonly Set<number>[];
  beforeAll(() => {
    turns = [0, 1, 2, 3, 4].map(turnsOf);
  });
  const turnsOfAWeek = () =>
    turns.flatMap((times, position) =>
      [...times]
        .filter((time) => time < Date.parse("2026-12-03"))
        .map((time) => ({ position, hour: time / hour })),
    );

  it("have a turn in any three hours of the day in which a cluster is on", () => {
    const all = turnsOfAWeek();
    for (let begin = 0; begin < 24; begin += 1) {
      const on = [0, 1, 2].map((more) => (begin + more) % 24);
      const awake = all.filter(({ hour }) => on.includes(hour % 24));
      expect([...new Set(awake.map(({ position }) => position))]).toEqual([0, 1, 2, 3, 4]);
    }
  });

  it("leave an hour for what another control plane has begun", () => {
    const all = turnsOfAWeek();
    for (const { position, hour } of all) {
      const others = all.filter((turn) => turn.position !== position);
      expect(others.filter((turn) => Math.abs(turn.hour - hour) < 2)).toEqual([]);
    }
    const { content } = renewalFiles(0).find(({ path }) => path.endsWith(".service"))!;
    expect(content).toContain("TimeoutStartSec=1h\n");
    // Five minutes for each static pod, which are less than that together.
    const script = readFileSync(join(checkout, "cloud-init/renew-certificates.sh"), "utf8");
    expect(script).toContain("limit=${ZONED_LIMIT:-300}\n");
  });

  /** With how much time left the script renews. */
  const renewsBelow = (() => {
    const script = readFileSync(join(checkout, "cloud-init/renew-certificates.sh"), "utf8");
    return Number(/^least_days=(\d+)$/m.exec(script)![1]) * 24 * hour;
  })();

  /** A kubelet asks for its next certificate at 90 % of the time of the last one, at the latest. */
  const kubeletRenewsBelow = year / 10;

  const isWorkingDay = (at: Date) => at.getUTCDay() % 6 !== 0;

  it.each<[habit: string, isOn: (at: Date) => boolean]>([
    [
      "from 8 to 18 o'clock on working days",
      (at) => isWorkingDay(at) && at.getUTCHours() >= 8 && at.getUTCHours() < 18,
    ],
    ["for three hours every evening", (at) => at.getUTCHours() >= 19 && at.getUTCHours() < 22],
    ["for three hours around midnight", (at) => [23, 0, 1].includes(at.getUTCHours())],
    ["always", () => true],
  ])(
    "renew each certificate before it ends, of a cluster that is on %s, for three years",
    (_, isOn) => {
      const controlPlanes = turns.map(() => begin + year);
      let kubelet = begin + year;
      const ended: string[] = [];

      for (let now = begin; now < end; now += hour) {
        if (!isOn(new Date(now))) continue;
        controlPlanes.forEach((until, position) => {
          if (until <= now)
            ended.push(`control plane ${position + 1} on ${new Date(now).toISOString()}`);
          // A machine that is switched on in this hour is not up at its beginning.
          const isUp = isOn(new Date(now - hour));
          if (isUp && turns[position]!.has(now) && until - now < renewsBelow) {
            controlPlanes[position] = now + year;
          }
        });
        if (kubelet <= now) ended.push(`a kubelet on ${new Date(now).toISOString()}`);
        if (kubelet - now < kubeletRenewsBelow) kubelet = now + year;
      }

      expect(ended).toEqual([]);
    },
  );
});
