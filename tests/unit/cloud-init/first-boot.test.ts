import { createHash } from "node:crypto";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { parseAllDocuments } from "yaml";

import { kubeadmFiles } from "../../../components/kubeadm/kubeadm";
import { bootstrapText, cloudInitText } from "../../../components/machine/payload";
import { machinesOf } from "../../../components/settings/topology";
import { versions } from "../../../components/versions";
import { late as waiting } from "../../../tools/local-azure/machines/qemu/image/debian";
import { wantedImages } from "../../../tools/mirror/images/wanted-images";
import {
  FakeMachine,
  firstBootPrograms,
  type FirstBootSettings,
  killsItsScript,
  shipFirstBoot,
} from "../../support/fake-machine";
import { serve } from "../../support/listen";
import { specOf, validSettings } from "../../support/sample";
import { testFolder } from "../../support/test-folder";
import { installed, Outcome, output } from "../../support/tools";
import { until } from "../../support/until";

const archiveOf = (program: string) => {
  const folder = testFolder();
  mkdirSync(join(folder, "cri-dockerd"));
  writeFileSync(join(folder, "cri-dockerd", "cri-dockerd"), program);
  execFileSync("tar", ["-czf", join(folder, "a.tgz"), "-C", folder, "cri-dockerd/cri-dockerd"]);
  const archive = readFileSync(join(folder, "a.tgz"));
  return archive;
};
const criDockerd = archiveOf("the program");
const criDockerdSum = createHash("sha256").update(criDockerd).digest("hex");

/** What the mirror of these tests has. */
const shelf = new Map<string, Buffer | string>();
let mirror: string;

beforeAll(async () => {
  mirror = await serve(({ url }, reply) => {
    const found = shelf.get(url ?? "");
    reply.writeHead(found === undefined ? 404 : 200).end(found);
  });
});

const images = ["kube-apiserver:v9.9.9", "coredns/coredns:v8", "pause:3.99"].map(
  (image) => `registry.k8s.io/${image}`,
);

const programs = {
  ...firstBootPrograms(images),
  dpkg: `case $1 in
    --configure) ;;
    --print-architecture) echo amd64 ;;
    *) exec /usr/bin/dpkg "$@" ;;
  esac`,
};

const imagesFile = "/etc/zoned/kubeadm-images.yaml";

/** What kubeadm is to have the images of. */
const imagesFor = (machine: FakeMachine) =>
  parseAllDocuments(machine.read(imagesFile)).map((document) => document.toJS());

/** A healthy machine; each test makes one change to it. */
const machine = (settings: FirstBootSettings = {}) => {
  const archive = "/cri-dockerd/cri-dockerd-0.9.9.amd64.tgz";
  shelf.clear();
  shelf.set("/apt/Release.key", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
  shelf.set(archive, criDockerd);
  shelf.set(`${archive}.sha256`, `${criDockerdSum}  ${archive}\n`);

  const made = new FakeMachine(programs);
  shipFirstBoot(made, { MIRROR: mirror, ...settings });
  return made;
};

const boot = (of: FakeMachine, env?: Record<string, string>) =>
  of.run("/opt/zoned/first-boot.sh", [], env);

/** What one step of a first boot does, or another part of the script. */
const runPart = (of: FakeMachine, part: string) => of.run("/opt/zoned/first-boot.sh", [part]);

/** A dead process whose parent has not waited for it is a zombie. */
const isRunning = (pid: string) => {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]![0] !== "Z";
  } catch {
    return false;
  }
};

const failure = "/var/lib/zoned/first-boot.failed";

/** Units that the simulated base image does not start before the first boot has written a file. */
const late = waiting.flatMap(({ path, text }) => {
  const unit = /system\/(.+)\.d\//.exec(path)?.[1];
  const file = /^ConditionPathExists=(.+)$/m.exec(text)?.[1];
  return unit && file ? [{ unit, file }] : [];
});

/**
 * Three network namespaces: a pod, its machine, and what answers for Azure. Needs no rights on this
 * machine.
 */
const network = `
set -euo pipefail
unshare --net sleep 60 & pod=$!
unshare --net sleep 60 & azure=$!
trap 'kill $pod $azure' EXIT
until [[ $(readlink /proc/$pod/ns/net) != $(readlink /proc/$$/ns/net) &&
  $(readlink /proc/$azure/ns/net) != $(readlink /proc/$$/ns/net) ]]; do sleep 0.05; done
ip link set lo up
ip link add pod type veth peer name eth0 netns $pod
ip link add out type veth peer name eth0 netns $azure
ip address add 10.244.0.1/24 dev pod
ip address add 192.0.2.1/24 dev out
ip link set pod up
ip link set out up
in_pod() { nsenter --target $pod --net "$@"; }
in_azure() { nsenter --target $azure --net "$@"; }
in_pod ip address add 10.244.0.2/24 dev eth0
in_pod ip link set eth0 up
in_pod ip route add default via 10.244.0.1
for address in 192.0.2.2/24 169.254.169.254/32 168.63.129.16/32; do in_azure ip address add $address dev eth0; done
in_azure ip link set eth0 up
in_azure ip route add default via 192.0.2.1
ip route add 169.254.169.254 via 192.0.2.2
ip route add 168.63.129.16 via 192.0.2.2
echo 1 >/proc/sys/net/ipv4/ip_forward
nsenter --target $azure --net python3 -c '
import socket, time
for port in (80, 53, 32526):
    listener = socket.socket()
    listener.bind(("0.0.0.0", port))
    listener.listen()
    globals()[f"kept{port}"] = listener
print("listening", flush=True)
time.sleep(60)' >"$0.listening" 2>&1 & listener=$!
trap 'kill $pod $azure $listener' EXIT
until [[ -s $0.listening ]]; do sleep 0.05; done
try() {
  for target in 169.254.169.254/80 168.63.129.16/80 168.63.129.16/32526 168.63.129.16/53 192.0.2.2/80; do
    timeout 3 bash -c "exec 3<>/dev/tcp/$target" 2>/dev/null && echo "$1 $target open" || echo "$1 $target closed"
  done
}
export -f try
in_pod bash -c 'try before'
nft -f "$1"
nft -f "$1"
try machine
in_pod bash -c 'try pod'
# IPVS sends a pod's packet on from the machine itself, with the pod's address.
python3 -c '
import socket, struct
for source in ("192.0.2.1", "10.244.0.2"):
    for target in ("169.254.169.254", "168.63.129.16", "192.0.2.2"):
        tcp = struct.pack("!HHIIBBHHH", 1234, 80, 0, 0, 5 << 4, 2, 1024, 0, 0)
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0,
                         socket.inet_aton(source), socket.inet_aton(target))
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        try:
            raw.sendto(ip + tcp, (target, 0))
            print("ipvs", source, target, "open")
        except PermissionError:
            print("ipvs", source, target, "closed")
'
`;

describe("a first boot that ends well", () => {
  let healthy: FakeMachine;
  let outcome: Outcome;
  beforeAll(async () => {
    healthy = machine();
    healthy.program(
      "systemctl",
      late
        .map(({ unit, file }) => `[[ $* != *"start ${unit}" || -e $root${file} ]] || exit 1`)
        .join("\n"),
    );
    healthy.program(
      "apt-get",
      `echo "\${DEBIAN_FRONTEND:-} \${NEEDRESTART_SUSPEND:-}" >>"$root/apt-environment"
      [[ $* == *docker.io* ]] && {
        cp "$root/etc/docker/daemon.json" "$root/seen.json"
        cp -r "$root/etc/systemd/system" "$root/seen-units"
      }
      exit 0`,
    );
    outcome = await boot(healthy);
  });

  it("ends with its sentinel, and with a line in the log for each step", async () => {
    expect([
      outcome.code,
      healthy.has("/var/lib/zoned/first-boot.done"),
      healthy.has(failure),
    ]).toEqual([0, true, false]);
    const done = [...outcome.stdout.matchAll(/^\S+Z first boot: (.*): done after/gm)].map(
      ([, name]) => name,
    );
    expect(done).toEqual([
      "egress",
      "package source",
      "kernel modules",
      "kernel settings",
      "swap off",
      "tools",
      "firewall for pods",
      "container runtime",
      "kubernetes packages",
      "containerd settings",
      "images",
    ]);
    for (const name of done) {
      expect(healthy.read("/var/log/zoned.log")).toMatch(
        new RegExp(`^\\d{4}-\\d\\d-\\d\\dT.*Z first boot: ${name}: done`, "m"),
      );
    }
  });

  it("keeps its log to root, for a program may say an address with a password in it", () => {
    expect(statSync(join(healthy.root, "/var/log/zoned.log")).mode & 0o777).toBe(0o600);
  });

  it("begins with the proxy, where there is one, by which it goes from then on", async () => {
    const behind = machine();
    behind.program("update-ca-certificates", "");
    behind.write("/etc/zoned/proxy.env", `http_proxy='${mirror}'\nno_proxy='127.0.0.1'\n`);
    behind.write("/etc/zoned/proxy-ca.crt", "");

    expect(await boot(behind)).toMatchObject({ code: 0, stderr: "" });

    const begun = [...behind.read("/var/log/zoned.log").matchAll(/first boot: (.+): begins/g)];
    expect(begun[0]![1]).toBe("proxy");
    expect(behind.read("/etc/apt/apt.conf.d/95zoned-proxy")).toContain(mirror);
  });

  it("loads every module now and at every boot", async () => {
    const wanted = "overlay br_netfilter nf_conntrack nft_fib_inet vxlan ip_vs".split(" ");
    const schedulers = "rr wrr sh lc wlc fo ovf lblc lblcr dh sed nq mh".split(" ");
    const all = [...wanted, ...schedulers.map((name) => `ip_vs_${name}`)];
    expect(healthy.read("/etc/modules-load.d/zoned.conf").trim().split("\n").sort()).toEqual(
      all.sort(),
    );
    expect(healthy.callsOf("modprobe")).toEqual(expect.arrayContaining(all));
  });

  it("installs every program that the scripts, kubeadm and kube-proxy call, and pins Kubernetes, by apt-get with nobody there to answer it", () => {
    const options = [
      // Waits for its lock.
      "DPkg::Lock::Timeout=600",
      "Dpkg::Options::=--force-confold",
      // From the mirror alone.
      "Dir::Etc::SourceList=/etc/apt/sources.list.d/zoned.list",
      "Dir::Etc::SourceParts=-",
      "APT::Get::List-Cleanup=0",
    ];
    const apt = options.map((option) => `-o ${option}`).join(" ");
    // What it names and nothing beside, over packages that are held, or newer, as of a version that was taken back.
    const install = `${apt} install --yes --allow-downgrades --no-install-recommends --allow-change-held-packages`;
    expect(healthy.callsOf("apt-get")).toEqual([
      // An index that could not be fetched is a warning to apt.
      `${apt} -o APT::Update::Error-Mode=any update`,
      `${install} ca-certificates conntrack curl ethtool ipset iptables ipvsadm jq nftables socat`,
      `${install} containerd docker.io`,
      `${install} kubelet=9.9.9-* kubeadm=9.9.9-* kubectl=9.9.9-*`,
    ]);
    // debconf and needrestart.
    const asked = healthy.read("/apt-environment").trim().split("\n");
    expect([...new Set(asked)]).toEqual(["noninteractive 1"]);
  });

  it("trusts packages of the mirror by the mirror's key", async () => {
    expect(healthy.read("/etc/apt/sources.list.d/zoned.list").replaceAll(healthy.root, "")).toBe(
      `deb [signed-by=/etc/apt/keyrings/zoned.asc] ${mirror}/apt/ /\n`,
    );
    expect(healthy.read("/etc/apt/keyrings/zoned.asc")).toBe(shelf.get("/apt/Release.key"));
  });

  it("holds what pods run on, and Kubernetes", async () => {
    expect(healthy.callsOf("apt-mark")).toEqual([
      "hold package-of-containerd package-of-runc",
      "hold package-of-dockerd",
      "hold kubelet kubeadm kubectl",
    ]);
  });

  it("has configured dockerd to leave the firewall alone before the package starts it", async () => {
    expect(JSON.parse(healthy.read("/seen.json"))).toMatchObject({
      iptables: false,
      ip6tables: false,
      "ip-forward": false,
      bridge: "none",
      "exec-opts": ["native.cgroupdriver=systemd"],
      "log-driver": "json-file",
      "log-opts": { "max-size": "10m", "max-file": "5" },
      "live-restore": true,
    });
  });

  it("starts containerd once, with its settings, and Docker on top of it", async () => {
    const starts = healthy
      .callsOf("systemctl")
      .filter((call) => /^(re)?start (containerd|docker)/.test(call));
    expect(starts).toEqual(["restart containerd.service", "start docker.service"]);
  });

  it("pulls kubeadm's images ahead, through the kubelet's own runtime", async () => {
    expect(healthy.callsOf("kubeadm")).toContain(`config images pull --config ${imagesFile}`);
    expect(imagesFor(healthy)).toEqual([
      expect.objectContaining({
        nodeRegistration: { criSocket: "unix:///run/containerd/containerd.sock" },
      }),
      expect.objectContaining({
        kubernetesVersion: "v9.9.9",
        etcd: { local: { imageTag: "9.9.8-0" } },
      }),
    ]);
  });

  it.each(late)("has written $file when it starts $unit, which waits for it", ({ unit }) => {
    expect(healthy.callsOf("systemctl").join()).toContain(`start ${unit}`);
  });

  it("leaves a folder for static pods, which a worker's kubelet misses every second", async () => {
    expect(healthy.has("/etc/kubernetes/manifests")).toBe(true);
  });

  it("has systemd start at every boot what the node needs", () => {
    const enabled = healthy.callsOf("systemctl").filter((call) => call.startsWith("enable "));

    expect(enabled.sort()).toEqual(
      ["containerd", "docker", "kubelet", "zoned-firewall"].map((unit) => `enable ${unit}.service`),
    );
  });

  const routes = "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n";
  const files = "[Service]\nLimitNOFILE=1048576\n";
  it.each([
    [
      "the kernel forwards packets, and bridged ones meet iptables",
      "/etc/sysctl.d/90-zoned.conf",
      [
        "net.ipv4.ip_forward = 1\n",
        "net.bridge.bridge-nf-call-iptables = 1\n",
        "net.bridge.bridge-nf-call-ip6tables = 1\n",
        "fs.inotify.max_user_instances = 8192\n",
        "fs.inotify.max_user_watches = 524288\n",
      ].join(""),
    ],
    [
      "networkd takes no routes of the pod network away when it restarts",
      "/etc/systemd/networkd.conf.d/zoned.conf",
      routes,
    ],
    [
      "swap stays off",
      "/etc/fstab",
      "UUID=1 / ext4 defaults 0 1\n# /swap.img\tnone\tswap\tsw\t0\t0\n",
    ],
    [
      "an upgrade restarts nothing",
      "/etc/needrestart/conf.d/zoned.conf",
      '$nrconf{restart} = "l";\n',
    ],
    // From its package's first start on.
    [
      "containerd's containers open more files",
      "/seen-units/containerd.service.d/zoned-limits.conf",
      files,
    ],
    [
      "Docker's containers open more files",
      "/seen-units/docker.service.d/zoned-limits.conf",
      files,
    ],
  ])("has it that %s, by %s", (_, path, text) => {
    expect(healthy.read(path)).toBe(text);
  });

  it("has that at once", () => {
    expect(healthy.callsOf("sysctl")).toEqual(["--load /etc/sysctl.d/90-zoned.conf"]);
    expect(healthy.callsOf("systemctl")).toContain("mask swap.target");
    expect(healthy.callsOf("swapoff")).toEqual(["--all"]);
  });

  it("brings the rule back at every boot, before anything starts a container", async () => {
    const unit = healthy.read("/etc/systemd/system/zoned-firewall.service").split("\n");

    expect(unit).toEqual(
      expect.arrayContaining([
        "Before=containerd.service docker.service kubelet.service",
        // Which starts with no rules at all.
        "After=nftables.service",
        // What is before others waits for the end of its command by this type alone (systemd.service(5)).
        "Type=oneshot",
        "ExecStart=/usr/sbin/nft -f /etc/zoned/firewall.nft",
        "WantedBy=multi-user.target",
      ]),
    );
    expect(healthy.callsOf("systemctl")).toContain("restart zoned-firewall.service");
  });

  it("closes the metadata service and Azure's agent to pods, and to nothing else", async () => {
    installed("nft", "nftables");
    healthy.write("/network.sh", network);

    const said = output("unshare", [
      "--user",
      "--map-root-user",
      "--net",
      "bash",
      "-c",
      'PATH=$PATH:/usr/sbin:/sbin; exec bash "$@"',
      "bash",
      join(healthy.root, "network.sh"),
      join(healthy.root, "/etc/zoned/firewall.nft"),
    ]);

    expect(said.trim().split("\n")).toEqual([
      "before 169.254.169.254/80 open",
      "before 168.63.129.16/80 open",
      "before 168.63.129.16/32526 open",
      "before 168.63.129.16/53 open",
      "before 192.0.2.2/80 open",
      "machine 169.254.169.254/80 open",
      "machine 168.63.129.16/80 open",
      "machine 168.63.129.16/32526 open",
      "machine 168.63.129.16/53 open",
      "machine 192.0.2.2/80 open",
      "pod 169.254.169.254/80 closed",
      "pod 168.63.129.16/80 closed",
      "pod 168.63.129.16/32526 closed",
      "pod 168.63.129.16/53 open",
      "pod 192.0.2.2/80 open",
      "ipvs 192.0.2.1 169.254.169.254 open",
      "ipvs 192.0.2.1 168.63.129.16 open",
      "ipvs 192.0.2.1 192.0.2.2 open",
      "ipvs 10.244.0.2 169.254.169.254 closed",
      "ipvs 10.244.0.2 168.63.129.16 closed",
      "ipvs 10.244.0.2 192.0.2.2 open",
    ]);
  });

  it("keeps upgrades in the background from beginning", () => {
    expect(healthy.callsOf("systemctl")[0]).toBe("stop apt-daily.timer apt-daily-upgrade.timer");
  });

  it("changes nothing when it is run once more", async () => {
    const { length } = healthy.calls;

    expect(await boot(healthy)).toMatchObject({ code: 0, stdout: "" });

    expect(healthy.calls).toHaveLength(length);
  });
});

it("may be run again after a failure, and then ends well", async () => {
  const broken = machine();
  broken.program("swapoff", "exit 3");
  expect((await boot(broken)).code).toBe(3);
  expect(broken.read(failure)).toBe("swap off, exit code 3\n");
  broken.program("swapoff", "");

  expect((await boot(broken)).code).toBe(0);

  expect([broken.has(failure), broken.has("/var/lib/zoned/first-boot.done")]).toEqual([
    false,
    true,
  ]);
});

it("names every module that the kernel must have and has not", async () => {
  const needed =
    "overlay br_netfilter nf_conntrack nft_fib_inet vxlan ip_vs ip_vs_rr ip_vs_wrr ip_vs_sh";
  const broken = machine();
  broken.program("modprobe", `[[ " ${needed} " != *" $1 "* ]]`);

  const { code, stdout } = await runPart(broken, "load_modules");

  expect(code).toBe(1);
  expect(stdout).toContain(`has no module ${needed}: take an image`);
});

it("goes on with a warning where a scheduler is missing that nobody may have chosen", async () => {
  const poor = machine();
  poor.program("modprobe", "[[ $* != ip_vs_fo ]]");

  const { code, stdout } = await runPart(poor, "load_modules");

  expect(code).toBe(0);
  expect(stdout).toContain("no ip_vs_fo, so the proxy scheduler fo cannot be chosen");
  expect(poor.read("/etc/modules-load.d/zoned.conf").split("\n")).not.toContain("ip_vs_fo");
});

it("takes rarer modules from the package that some kernels keep them in, and the one that brings those of the next kernel", async () => {
  const split = machine();
  split.program("uname", "echo 6.0-azure");
  split.program(
    "dpkg-query",
    `case $* in
      *linux-image-*) printf '%s linux-image-%s\\n' 'ii ' azure 'un ' generic 'ii ' unsigned-6.0-azure ;;
      *) ${firstBootPrograms([])["dpkg-query"]} ;;
    esac`,
  );
  split.program("apt-cache", "[[ $* =~ show.linux-modules-extra-(6.0-azure|azure|generic)$ ]]");
  split.program(
    "apt-get",
    '[[ $* =~ (linux-modules-extra-.+)$ ]] && touch "$root/${BASH_REMATCH[1]}"; exit 0',
  );
  split.program("modprobe", "[[ -e $root/linux-modules-extra-6.0-azure ]]");

  expect((await runPart(split, "load_modules")).code).toBe(0);

  const installed = split
    .callsOf("apt-get")
    .join("\n")
    .match(/linux-modules-extra-\S+/g);
  expect(installed).toEqual(["linux-modules-extra-6.0-azure", "linux-modules-extra-azure"]);
});

it("tries each step again that may fail for a while, with longer and longer pauses, and downloads six times for five minutes", async () => {
  const downloads = { add_package_source: 8, install_tools: 5, install_runtime: 5 };
  const more = { install_kubernetes: 5, install_cri_dockerd: 5, pull_images: 5 };
  const others = { check_egress: 42, load_modules: 1, close_metadata: 1, configure_containerd: 2 };
  const poor = machine({ CONTAINER_RUNTIME: "cri-dockerd" });
  poor.stumble({ ...downloads, ...more, ...others });

  expect((await boot(poor)).code).toBe(0);

  expect(Object.values(poor.stumblesLeft)).toEqual(Array<number>(10).fill(0));
  expect(poor.callsOf("sleep").slice(0, 3)).toEqual(["5", "10", "20"]);
  for (const step of Object.keys({ ...downloads, ...more })) {
    const tries = poor.callsOf("timeout").filter((call) => call.endsWith(` ${step}`));
    expect(tries.length).toBeGreaterThanOrEqual(6);
    for (const call of tries) expect(Number(call.split(" ")[1])).toBeGreaterThanOrEqual(300);
  }
});

it("asks the archive anew when it has not what it said it had", async () => {
  const moved = machine();
  moved.program(
    "apt-get",
    `case $* in
      *update) echo x >>"$root/updates" ;;
      *install*kubelet*) [[ -e $root/updates ]] || exit 100 ;;
    esac`,
  );

  expect((await runPart(moved, "install_kubernetes")).code).toBe(0);
});

const locks = [
  "lib/dpkg/lock-frontend",
  "lib/dpkg/lock",
  "lib/apt/lists/lock",
  "cache/apt/archives/lock",
];

it("waits for each lock that somebody holds, as apt itself does not for all of them", async () => {
  const busy = machine();
  for (const one of locks) busy.write(`/var/${one}`, "");
  busy.program(
    "apt-get",
    `python3 -c 'import fcntl, sys
for path in sys.argv[1:]: fcntl.lockf(open(path, "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
' $root/var/{${locks.join(",")}} || exit 100`,
  );
  busy.program("python3", 'exec /usr/bin/python3 "$@" >>"$root/said"');
  busy.write("/said", "");
  const holder = spawn("python3", [
    "-c",
    `import fcntl, sys
files = [open(path, "r+") for path in sys.argv[1:]]
for file in files: fcntl.lockf(file, fcntl.LOCK_EX)
print(flush=True)
for file in files:
    sys.stdin.readline()
    file.close()`,
    ...locks.map((lock) => join(busy.root, "var", lock)),
  ]);
  await once(holder.stdout, "data");

  const installing = runPart(busy, "install_tools");
  for (const lock of locks) {
    const waits = `waiting for ${join(busy.root, "var", lock)}\n`;
    await until(waits, async () => busy.read("/said").endsWith(waits));
    holder.stdin.write("\n");
  }

  expect((await installing).code).toBe(0);
  expect(busy.callsOf("apt-get")).toHaveLength(1);
});

it("needs no timers of upgrades, which not every image has", async () => {
  const bare = machine();
  bare.program("systemctl", "[[ $* != *apt-daily* ]] || exit 5");

  expect((await runPart(bare, "pause_upgrades")).code).toBe(0);
});

it("waits where it is at work already, and then has nothing left to do", async () => {
  const healthy = machine();

  const outcomes = await Promise.all([boot(healthy), boot(healthy)]);

  expect(outcomes.map(({ code }) => code)).toEqual([0, 0]);
  expect(healthy.callsOf("swapoff")).toHaveLength(1);
});

it("waits for the step that is at work where the script above it was killed", async () => {
  const healthy = machine();
  healthy.program("swapoff", killsItsScript);

  await expect(boot(healthy)).rejects.toThrow();
  expect((await boot(healthy)).code).toBe(0);

  expect(healthy.read("/var/log/zoned.log")).toMatch(/the step has ended[^]* egress: begins/);
});

it("lets upgrades in the background begin again where nobody had switched them off", async () => {
  const healthy = machine();
  healthy.program("systemctl", '[[ $* != "is-enabled --quiet apt-daily-upgrade.timer" ]]');

  await runPart(healthy, "resume_upgrades");

  expect(healthy.callsOf("systemctl").filter((call) => call.startsWith("start"))).toEqual([
    "start apt-daily.timer",
  ]);
});

it("repairs packages that a try left half configured, and goes on", async () => {
  const shaky = machine();
  shaky.program("apt-get", "[[ $* != *install*kubelet* || -e $root/configured ]] || exit 100");
  shaky.program(
    "dpkg",
    '[[ $1 == --configure ]] && touch "$root/configured"; [[ $1 == --configure ]] || exec /usr/bin/dpkg "$@"',
  );

  expect((await runPart(shaky, "install_kubernetes")).code).toBe(0);
});

it("is waited for by the bootstrap step for longer than each of its own steps may take", () => {
  const [, waits] = /^step "first boot" (\d+) /m.exec(bootstrapText())!;
  const limits = [...cloudInitText("first-boot.sh").matchAll(/step "[\w -]+" (\d+) \d+ /g)];

  expect(limits.length).toBeGreaterThan(12);
  for (const [, limit] of limits) expect(Number(waits)).toBeGreaterThan(2 * Number(limit));
});

it("names the step that failed in the end, and starts none after it", async () => {
  const broken = machine();
  broken.program("apt-get", "[[ $* == *update ]] && exit 100");

  const { code, stdout } = await boot(broken);

  expect(code).toBe(100);
  expect(broken.read(failure)).toBe("package source, exit code 100\n");
  expect(stdout.trim().split("\n").at(-1)).toMatch(
    /first boot: package source: failed with exit code 100$/,
  );
  expect(broken.callsOf("modprobe")).toEqual([]);
});

it.each<[string, string, number, (of: FakeMachine) => void]>([
  ["that fills the disk", 'yes >>"$root/var/log/zoned.log"', 1, (full) => full.mount("/var", 256)],
  // As for lack of memory.
  ["whose program is killed", "exit 137", 137, () => undefined],
])("names a step %s, and not as one that lacked time", async (_, does, code, prepare) => {
  const broken = machine();
  prepare(broken);
  broken.program("swapoff", does);

  const outcome = await boot(broken);

  expect(outcome.code).toBe(code);
  expect(broken.read(failure)).toBe(`swap off, exit code ${code}\n`);
  expect(outcome.stdout).not.toContain("were not enough");
});

it("stops a step that hangs, with all that it started, and names it", async () => {
  const hanging = machine();
  hanging.program("swapoff", 'echo $$ >"$root/hanging"; sleep 1; exec /bin/sleep 300');

  const { code, stdout } = await boot(hanging, { HANGS: "swap_off" });

  expect(code).toBe(124);
  expect(hanging.read(failure)).toBe("swap off, exit code 124\n");
  expect(stdout).toContain("first boot: swap off: stopped, 120 s were not enough");
  expect(isRunning(hanging.read("/hanging").trim())).toBe(false);
});

it("says where it cannot connect to, before anything else", async () => {
  const shut = machine({ MIRROR: "http://127.0.0.1:9/zoned" });

  expect((await boot(shut)).code).toBe(1);

  expect(shut.read(failure)).toBe("egress, exit code 1\n");
  expect(shut.read("/var/log/zoned.log")).toContain("no connection to 127.0.0.1 port 9");
  expect(shut.callsOf("apt-get")).toEqual([]);
  // docs/landing-zone.md gives those who add a route to the new network twenty minutes.
  const seconds = shut.callsOf("sleep").reduce((sum, pause) => sum + Number(pause), 0);
  expect(seconds).toBeGreaterThanOrEqual(20 * 60);
});

it("names every host that it cannot connect to, those of the distribution's archive among them", async () => {
  const shut = machine({ MIRROR: "" });
  shut.program("apt-get", "echo http://azure.archive.example/ubuntu/");
  shut.program(
    "timeout",
    `[[ $* == */dev/tcp/* ]] && { [[ $* == *" pkgs.k8s.io "* ]]; exit; }; shift 2; exec "$@"`,
  );

  const { code, stdout } = await runPart(shut, "check_egress");

  expect(code).toBe(1);
  expect(stdout).toContain(
    "no connection to azure.archive.example port 80,prod-cdn.packages.k8s.io port 443,registry.k8s.io port 443: look at",
  );
});

/** Those of add-ons: Canal's manifest names images of two. What kubeadm pulls from is no question. */
const registries = ["quay.io", "docker.io"]
  .concat(wantedImages([versions.kubernetes], [], []).map(({ image }) => image.split("/")[0]!))
  .filter((host, index, all) => host !== "registry.k8s.io" && all.indexOf(host) === index)
  .map((host) => (host === "docker.io" ? "registry-1.docker.io" : host));

describe("without a mirror", () => {
  /** Connects to every host but these. */
  const official = (unreachable: readonly string[] = [], settings: FirstBootSettings = {}) => {
    const made = machine({ ...settings, MIRROR: "" });
    made.program(
      "timeout",
      `[[ $* == */dev/tcp/* ]] || { shift 2; exec "$@"; }; [[ " ${unreachable.join(" ")} " != *" \${*: -2:1} "* ]]`,
    );
    return made;
  };
  const check = async (of: FakeMachine) => {
    const outcome = await runPart(of, "check_egress");
    const hosts = of.calls
      .filter((call) => call.some((word) => word.includes("/dev/tcp/")))
      .map((call) => call.slice(-2).join(" "));
    return { ...outcome, hosts };
  };

  it.each([
    { runtime: "docker", version: "", more: [] },
    { runtime: "cri-dockerd", version: "", more: ["github.com 443"] },
    { runtime: "docker", version: "v9.9.1", more: ["packages.aks.azure.com 443"] },
  ])("asks each host that it takes something from, with $runtime and $version", async (scene) => {
    const { runtime, version, more } = scene;
    const healthy = official([], {
      ...{ CONTAINER_RUNTIME: runtime, CREDENTIAL_PROVIDER_VERSION: version },
    });
    // Debian's images for Azure name files of mirrors, and an archive may lie on a disk.
    healthy.program(
      "apt-get",
      `[[ $* == *indextargets* ]] && printf '%s\\n' mirror+file:/etc/apt/mirrors/debian.list file:/srv/apt/ \
        http://archive.example/ubuntu/ http://archive.example/ubuntu/ https://other.example:8443/ubuntu/`,
    );

    const { code, hosts } = await check(healthy);

    expect(code).toBe(0);
    expect(hosts.sort()).toEqual(
      [
        ...["archive.example 80", "other.example 8443", "pkgs.k8s.io 443"],
        ...["prod-cdn.packages.k8s.io 443", "registry.k8s.io 443", ...more],
        ...registries.map((host) => `${host} 443`),
      ].sort(),
    );
  });

  it.each([
    {
      given: "http",
      left: ["pkgs.k8s.io", "prod-cdn.packages.k8s.io", "registry.k8s.io", ...registries].map(
        (host) => `${host} 443`,
      ),
    },
    { given: "https", left: ["archive.example 80"] },
  ])("asks the proxy in place of what goes by it, with one of $given alone", async (scene) => {
    const behind = official();
    behind.program("apt-get", "echo http://archive.example/ubuntu/");
    behind.write("/etc/zoned/proxy.env", `${scene.given}_proxy=http://proxy.example:3128\n`);

    const { code, hosts } = await check(behind);

    expect(code).toBe(0);
    expect(hosts.sort()).toEqual(["proxy.example 3128", ...scene.left].sort());
  });

  it("asks all hosts at once, since each that a firewall drops packets to takes its ten seconds", async () => {
    const shut = machine({ MIRROR: "" });
    const asked = 3 + registries.length;
    // An answer comes when all have been asked, or not in time.
    shut.program(
      "timeout",
      `[[ $* == */dev/tcp/* ]] || { shift 2; exec "$@"; }
      echo asked >>"$root/asked"
      for _ in {1..100}; do (($(wc --lines <"$root/asked") < ${asked})) || exit 124; /bin/sleep 0.02; done`,
    );

    const { code, stdout } = await check(shut);

    expect(code).toBe(1);
    expect(stdout.match(/no connection/g)).toHaveLength(1 + registries.length);
    expect(stdout).toContain("pkgs.k8s.io port 443,prod-cdn.packages.k8s.io port 443,registry");
  });

  it("only says so where registries of add-ons cannot be reached, which a cluster may not need", async () => {
    const { code, stdout } = await check(official(registries));

    expect(code).toBe(0);
    for (const host of registries) {
      expect(stdout).toContain(
        `no connection to ${host} port 443, where images of add-ons come from`,
      );
    }
  });
});

it.each([
  { runtime: "docker", socket: "unix:///run/containerd/containerd.sock" },
  { runtime: "cri-dockerd", socket: "unix:///run/cri-dockerd.sock" },
])("brings crictl where there is a package of it, for $runtime", async ({ runtime, socket }) => {
  const healthy = machine({ CONTAINER_RUNTIME: runtime });
  healthy.program("apt-cache", '[[ $* == *"show cri-tools" ]]');
  await runPart(healthy, "install_kubernetes");

  expect(healthy.callsOf("apt-get").join("\n")).toContain("kubectl=9.9.9-* cri-tools");
  expect(healthy.read("/etc/systemd/system/kubelet.service.d/zoned-state.conf")).toMatch(
    /^ExecStartPre=\S+ -f \/var\/lib\/kubelet\/cpu_manager_state \/var\/lib\/kubelet\/memory_manager_state$/m,
  );
  expect(healthy.read("/etc/crictl.yaml")).toBe(`runtime-endpoint: ${socket}\n`);
});

it("leaves Docker out where containerd is asked for alone", async () => {
  const plain = machine({ CONTAINER_RUNTIME: "containerd" });
  for (const part of ["install_runtime", "configure_containerd"]) await runPart(plain, part);

  expect(plain.callsOf("apt-get").filter((call) => call.includes("docker"))).toEqual([]);
  expect(plain.callsOf("systemctl")).toContain("restart containerd.service");
  expect(plain.callsOf("systemctl").join()).not.toContain("docker");
  expect(plain.has("/etc/docker/daemon.json")).toBe(false);
});

it.each([
  {
    program: "containerd",
    version: "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1",
    says: "containerd is 1.6.20~ds1 here, and version 1.7.24",
  },
  {
    program: "containerd",
    version: "containerd containerd.io v1.6.33 d2d58213f83a351ca8f528a95fbd145f5654e957",
    says: "containerd is v1.6.33 here, and version 1.7.24",
  },
  {
    program: "dockerd",
    version: "Docker version 20.10.24+dfsg1, build 297e128",
    says: "Docker is 20.10.24+dfsg1, here, and version 26.1.3",
  },
  {
    // The last one whose AppArmor profile keeps runc's signals from containers.
    program: "dockerd",
    version: "Docker version 26.1.2, build ef1912d",
    says: "Docker is 26.1.2, here, and version 26.1.3",
  },
])("refuses a $program that is too old", async ({ program, version, says }) => {
  const old = machine();
  old.program(program, `echo "${version}"`);

  const { code, stdout } = await runPart(old, "install_runtime");

  expect(code).toBe(1);
  expect(stdout).toContain(says);
});

it.each(["1.7.24~ds1", "v2.3.0-rc.1"])(
  "counts %s of containerd as upstream's version",
  async (version) => {
    const distribution = machine();
    distribution.program(
      "containerd",
      `case $* in
        --version) echo "containerd github.com/containerd/containerd ${version} abcdef" ;;
        "config default") echo "version = 2" ;;
      esac`,
    );

    expect((await runPart(distribution, "install_runtime")).code).toBe(0);
  },
);

it("takes Docker's command line too, where the distribution has it in a package of its own", async () => {
  const debian = machine();
  debian.program("apt-cache", '[[ $* == *"show docker-cli" ]]');
  await runPart(debian, "install_runtime");

  expect(debian.callsOf("apt-get").join("\n")).toMatch(/ containerd docker\.io docker-cli$/m);
});

it.each([
  { step: "install_kubeadm", takes: ["kubeadm"] },
  { step: "install_kubelet", takes: ["kubelet", "kubectl"] },
])(
  "upgrades $takes alone by $step, and holds the new version, also behind somebody's own program of that name",
  async (scene) => {
    const { step, takes } = scene;
    const member = machine({ KUBERNETES_VERSION: "9.9.10" });
    member.program("dpkg-query", 'echo "no path found matching pattern ${@: -1}" >&2; exit 1');

    expect((await runPart(member, step)).code).toBe(0);

    const [install, ...more] = member.callsOf("apt-get");
    expect(more).toEqual([]);
    expect(install).toMatch(
      new RegExp(
        ` --allow-change-held-packages ${takes.map((name) => `${name}=9.9.10-\\*`).join(" ")}$`,
      ),
    );
    expect(member.callsOf("apt-mark")).toEqual([`hold ${takes.join(" ")}`]);
  },
);

/** containerd's file as this version of it would read it, in its own words. */
const containerdReads = async (containerd: string) => {
  const healthy = machine();
  healthy.program(
    "containerd",
    `[[ $1 == --version ]] && { echo "x y 1.7.24"; exit; }; exec ${containerd} "$@"`,
  );
  expect((await runPart(healthy, "configure_containerd")).code).toBe(0);
  return output(containerd, [
    "--config",
    join(healthy.root, "/etc/containerd/config.toml"),
    "config",
    "dump",
  ]);
};

it("writes a file that the real containerd reads, with all that the kubelet needs in it", async () => {
  const dump = await containerdReads(installed("containerd", "containerd"));

  expect(dump).toContain("disabled_plugins = []");
  expect(dump).toMatch(/SystemdCgroup = true/);
  expect(dump).toMatch(/sandbox(_image)? = ['"]registry\.k8s\.io\/pause:3\.99['"]/);
  expect(dump).toMatch(/bin_dirs? = \[?['"]\/opt\/cni\/bin['"]/);
  expect(dump).toMatch(/conf_dir = ['"]\/etc\/cni\/net\.d['"]/);
  expect(dump).toMatch(/config_path = ['"]\/etc\/containerd\/certs\.d['"]/);
});

it.each([
  { prints: "version = 2", version: 2, plugin: "io.containerd.grpc.v1.cri" },
  { prints: "version = 3", version: 3, plugin: "io.containerd.cri.v1.runtime" },
  { prints: "version = 4", version: 3, plugin: "io.containerd.cri.v1.runtime" },
])(
  "writes version $version where containerd's default is $prints",
  async ({ prints, version, plugin }) => {
    const healthy = machine();
    healthy.program(
      "containerd",
      `case $* in --version) echo "x y 2.0.0" ;; *default) echo "${prints}" ;; esac`,
    );
    await runPart(healthy, "configure_containerd");

    const text = healthy.read("/etc/containerd/config.toml");

    expect(text.split("\n")[0]).toBe(`version = ${version}`);
    expect(text).toContain(
      `[plugins.'${plugin}'.containerd.runtimes.runc.options]\n  SystemdCgroup = true`,
    );
  },
);

it.each([
  { unit: "zoned-firewall.service", part: "close_metadata" },
  { unit: "containerd.service", part: "configure_containerd" },
  { unit: "docker.service", part: "configure_containerd" },
])("repeats what $unit said of why it did not start", async ({ unit, part }) => {
  const broken = machine();
  broken.program("systemctl", `[[ $* != *"start ${unit}" ]]`);
  broken.program("journalctl", `[[ $* == *"--unit ${unit}"* ]] && echo "its own words"`);

  expect(await runPart(broken, part)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("its own words"),
  });
});

it("has the rules by which volumes are found on a machine with NVMe", async () => {
  const made = machine();
  made.write("/dev/nvme0n1", "");
  made.program("apt-cache", "");

  const { code, stdout } = await boot(made);

  expect([code, stdout.includes("rules for disks: done")]).toEqual([0, true]);
});

it("asks the mirror's host for every image first", async () => {
  const healthy = machine({ MIRROR: `${mirror}/below` });
  await runPart(healthy, "configure_containerd");

  expect(healthy.read("/etc/containerd/certs.d/_default/hosts.toml")).toBe(
    `[host."${mirror}"]\n  capabilities = ["pull", "resolve"]\n`,
  );
});

describe("with dockerd under the kubelet", () => {
  const settings = { CONTAINER_RUNTIME: "cri-dockerd" };
  let healthy: FakeMachine;
  beforeAll(async () => {
    healthy = machine(settings);
    expect((await boot(healthy)).code).toBe(0);
  });

  it("installs cri-dockerd from the archive that the mirror vouches for", () => {
    expect(healthy.read("/usr/local/bin/cri-dockerd")).toBe("the program");
    expect(healthy.callsOf("systemctl")).toContain("enable cri-dockerd.service");
  });

  it("has it listen where kubeadm and the kubelet ask, and find the pod network where Canal puts it", () => {
    const unit = healthy.read("/etc/systemd/system/cri-dockerd.service");
    const [, command = ""] = /^ExecStart=((?:.*\\\n)*.*)\n/m.exec(unit)!;
    const initial = kubeadmFiles(
      specOf({ ...validSettings, containerRuntime: "cri-dockerd" }),
      machinesOf(validSettings)[0]!,
    ).find(({ path }) => path === "/etc/zoned/kubeadm-init.yaml")!;
    const [, socket] = /criSocket: (\S+)/.exec(initial.content)!;

    expect(command.replaceAll("\\\n", "").split(/ +(?=--)/)).toEqual([
      "/usr/local/bin/cri-dockerd",
      `--container-runtime-endpoint ${socket}`,
      "--network-plugin cni",
      "--cni-bin-dir /opt/cni/bin",
      "--cni-conf-dir /etc/cni/net.d",
      "--pod-infra-container-image registry.k8s.io/pause:3.99",
    ]);
    // Whatever has ended it: a node without it is not ready.
    expect(unit).toMatch(/^Restart=always$/m);
  });

  it("takes images from the mirror by their own names, since dockerd redirects Docker Hub only", () => {
    const host = mirror.slice("http://".length);
    expect(healthy.callsOf("docker")).toEqual(
      images.flatMap((image) => {
        const here = image.replace("registry.k8s.io", host);
        return [`pull ${here}`, `tag ${here} ${image}`, `image rm ${here}`];
      }),
    );
    expect(JSON.parse(healthy.read("/etc/docker/daemon.json"))).toMatchObject({
      "registry-mirrors": [mirror],
      "insecure-registries": [host],
    });
  });

  it("does not take images that kubeadm cannot list for none", async () => {
    const broken = machine(settings);
    broken.program("kubeadm", "exit 9");

    expect((await runPart(broken, "pull_images")).code).toBe(9);
  });

  it("refuses an archive with another checksum", async () => {
    const broken = machine(settings);
    shelf.set("/cri-dockerd/cri-dockerd-0.9.9.amd64.tgz", archiveOf("another program"));

    expect((await runPart(broken, "install_cri_dockerd")).code).not.toBe(0);

    expect(broken.has("/usr/local/bin/cri-dockerd")).toBe(false);
  });

  it("takes packages, archive and images from upstream where there is no mirror", async () => {
    const official = machine({ ...settings, MIRROR: "" });
    official.program("timeout", `[[ $* == */dev/tcp/* ]] || { shift 2; exec "$@"; }`);
    official.program(
      "apt-get",
      '[[ $* != *update ]] || cp "$root/etc/apt/sources.list.d/zoned.list" "$root/list"',
    );
    writeFileSync(join(official.root, "archive.tgz"), criDockerd);
    official.program(
      "python3",
      '[[ $2 == *urlopen* ]] && { echo "$3" >>"$root/fetched"; cp "$root/archive.tgz" "$4"; exit; }; exec /usr/bin/env -i /usr/bin/python3 "$@"',
    );

    expect((await boot(official)).code).toBe(0);

    // Kubernetes is in a repository of its own minor.
    const source = "https://pkgs.k8s.io/core:/stable:/v9.9/deb";
    expect(official.read("/fetched").trim().split("\n")).toEqual([
      `${source}/Release.key`,
      "https://github.com/Mirantis/cri-dockerd/releases/download/v0.9.9/cri-dockerd-0.9.9.amd64.tgz",
    ]);
    expect(official.read("/list")).toContain(` ${source}/ /\n`);
    // Its key expires, and a machine's every update with it.
    expect(official.has("/etc/apt/sources.list.d/zoned.list")).toBe(false);
    expect(official.has("/etc/apt/keyrings/zoned.asc")).toBe(false);
    expect(official.has("/etc/containerd/certs.d")).toBe(false);
    expect(official.read("/usr/local/bin/cri-dockerd")).toBe("the program");
    expect(official.callsOf("kubeadm")).toContain(`config images pull --config ${imagesFile}`);
    expect(imagesFor(official)[0]).toMatchObject({
      nodeRegistration: { criSocket: "unix:///run/cri-dockerd.sock" },
    });
  });
});
