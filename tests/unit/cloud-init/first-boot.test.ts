import { createHash } from "node:crypto";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from "node:fs";
import { createServer, Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { late } from "../../../local-azure/machines/qemu/image/debian";
import { checkout } from "../../../shared/checkout";
import { FakeMachine } from "../../support/fake-machine";
import { listen } from "../../support/listen";
import { installed, Outcome, output } from "../../support/tools";

jest.setTimeout(60_000);

const archiveOf = (program: string) => {
  const folder = mkdtempSync(join(tmpdir(), "zoned-archive-"));
  mkdirSync(join(folder, "cri-dockerd"));
  writeFileSync(join(folder, "cri-dockerd", "cri-dockerd"), program);
  execFileSync("tar", ["-czf", join(folder, "a.tgz"), "-C", folder, "cri-dockerd/cri-dockerd"]);
  const archive = readFileSync(join(folder, "a.tgz"));
  rmSync(folder, { recursive: true });
  return archive;
};
const criDockerd = archiveOf("the program");
const criDockerdSum = createHash("sha256").update(criDockerd).digest("hex");

/** What the mirror of these tests has. */
const shelf = new Map<string, Buffer | string>();
let server: Server;
let mirror: string;

beforeAll(async () => {
  server = createServer(({ url }, reply) => {
    const found = shelf.get(url ?? "");
    reply.writeHead(found === undefined ? 404 : 200).end(found);
  });
  mirror = `http://127.0.0.1:${await listen(server)}`;
});
afterAll(() => server.close());

const images = ["kube-apiserver:v9.9.9", "coredns/coredns:v8", "pause:3.99"].map(
  (image) => `registry.k8s.io/${image}`,
);

const programs = {
  "apt-get": "",
  "apt-cache": "exit 100",
  "apt-mark": "",
  "dpkg-query": 'for path in "${@:2}"; do echo "package-of-$(basename "$path"): $path"; done',
  dpkg: `case $1 in
    --configure) ;;
    --print-architecture) echo amd64 ;;
    *) exec /usr/bin/dpkg "$@" ;;
  esac`,
  modprobe: "",
  sysctl: "",
  swapoff: "",
  systemctl: "",
  containerd: `case $* in
    --version) echo "containerd github.com/containerd/containerd/v2 2.2.1 abcdef" ;;
    "config default") echo "version = 3" ;;
  esac`,
  runc: "",
  dockerd: 'echo "Docker version 29.1.3+dfsg1, build abc"',
  docker: "",
  kubelet: "",
  kubectl: "",
  kubeadm: `case $* in "config images list"*) printf '%s\\n' ${images.join(" ")} ;; esac`,
};

const machines: FakeMachine[] = [];
afterEach(() => machines.splice(0).forEach((machine) => machine.remove()));

const environment = {
  KUBERNETES_VERSION: "9.9.9",
  CONTAINER_RUNTIME: "docker",
  CONTAINERD_AT_LEAST: "1.7.24",
  DOCKER_AT_LEAST: "26.0.0",
  CRI_DOCKERD_VERSION: "0.9.9",
};

/** A healthy machine; each test makes one change to it. */
const machine = (settings: Partial<typeof environment> & { MIRROR?: string } = {}) => {
  const archive = "/cri-dockerd/cri-dockerd-0.9.9.amd64.tgz";
  shelf.clear();
  shelf.set("/apt/Release.key", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n");
  shelf.set(archive, criDockerd);
  shelf.set(`${archive}.sha256`, `${criDockerdSum}  ${archive}\n`);

  const made = new FakeMachine(programs);
  machines.push(made);
  made.ship("first-boot.sh", "/opt/zoned/first-boot.sh");
  const values = { ...environment, MIRROR: mirror, ...settings };
  made.write(
    "/etc/zoned/first-boot.env",
    Object.entries(values)
      .map(([name, value]) => `${name}='${value}'\n`)
      .join(""),
  );
  return made;
};

const boot = (of: FakeMachine, env?: Record<string, string>) =>
  of.run("/opt/zoned/first-boot.sh", [], env);

/** A dead process whose parent has not waited for it is a zombie. */
const isRunning = (pid: string) => {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]![0] !== "Z";
  } catch {
    return false;
  }
};

const failure = "/var/lib/zoned/first-boot.failed";

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
    machines.pop();
    healthy.program(
      "apt-get",
      `[[ $* == *docker.io* ]] && {
        cp "$root/etc/docker/daemon.json" "$root/seen.json"
        cp -r "$root/etc/systemd/system" "$root/seen-units"
      }
      exit 0`,
    );
    outcome = await boot(healthy);
  });
  afterAll(() => healthy.remove());

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

  it("loads every module now and at every boot", async () => {
    const wanted = ["overlay", "br_netfilter", "nf_conntrack", "nft_fib_inet", "vxlan", "ip_vs"];
    const schedulers = [
      "rr",
      "wrr",
      "sh",
      "lc",
      "wlc",
      "fo",
      "ovf",
      "lblc",
      "lblcr",
      "dh",
      "sed",
      "nq",
      "mh",
    ];
    const all = [...wanted, ...schedulers.map((name) => `ip_vs_${name}`)];
    expect(healthy.read("/etc/modules-load.d/zoned.conf").trim().split("\n").sort()).toEqual(
      all.sort(),
    );
    expect(healthy.callsOf("modprobe")).toEqual(expect.arrayContaining(all));
  });

  it("waits for apt's lock whenever it calls apt-get", async () => {
    const calls = healthy.callsOf("apt-get");

    expect(calls.length).toBeGreaterThan(3);
    expect(calls.filter((call) => !call.includes("-o DPkg::Lock::Timeout=600"))).toEqual([]);
  });

  it("takes packages from the mirror alone, and trusts them by the mirror's key", async () => {
    expect(healthy.read("/etc/apt/sources.list.d/zoned.list").replaceAll(healthy.root, "")).toBe(
      `deb [signed-by=/etc/apt/keyrings/zoned.asc] ${mirror}/apt/ /\n`,
    );
    expect(healthy.read("/etc/apt/keyrings/zoned.asc")).toBe(shelf.get("/apt/Release.key"));
    for (const call of healthy.callsOf("apt-get")) {
      expect(call).toContain(
        "-o Dir::Etc::SourceList=/etc/apt/sources.list.d/zoned.list -o Dir::Etc::SourceParts=-",
      );
    }
  });

  it("pins Kubernetes and holds what pods run on", async () => {
    expect(healthy.callsOf("apt-get").join("\n")).toContain(
      "kubelet=9.9.9-* kubeadm=9.9.9-* kubectl=9.9.9-*",
    );
    expect(healthy.callsOf("apt-mark")).toEqual([
      "hold package-of-containerd package-of-runc",
      "hold package-of-dockerd",
      "hold package-of-kubelet package-of-kubeadm package-of-kubectl",
    ]);
    expect(healthy.read("/etc/needrestart/conf.d/zoned.conf")).toBe('$nrconf{restart} = "l";\n');
  });

  it("has configured dockerd to leave the firewall alone before the package starts it", async () => {
    expect(JSON.parse(healthy.read("/seen.json"))).toMatchObject({
      iptables: false,
      bridge: "none",
      "exec-opts": ["native.cgroupdriver=systemd"],
      "log-opts": { "max-size": "10m" },
    });
  });

  it.each(["containerd", "docker"])(
    "lets containers of %s open more than 1,024 files, from its package's first start on",
    (unit) => {
      expect(healthy.read(`/seen-units/${unit}.service.d/zoned-limits.conf`)).toBe(
        "[Service]\nLimitNOFILE=1048576\n",
      );
    },
  );

  it("starts containerd once, with its settings, and Docker on top of it", async () => {
    const starts = healthy
      .callsOf("systemctl")
      .filter((call) => /^(re)?start (containerd|docker)/.test(call));
    expect(starts).toEqual(["restart containerd.service", "start docker.service"]);
  });

  it("pulls kubeadm's images ahead, through the kubelet's own runtime", async () => {
    expect(healthy.callsOf("kubeadm")).toContain(
      "config images pull --kubernetes-version v9.9.9 --cri-socket unix:///run/containerd/containerd.sock",
    );
  });

  it("leaves a folder for static pods, which a worker's kubelet misses every second", async () => {
    expect(healthy.has("/etc/kubernetes/manifests")).toBe(true);
  });

  it("installs every program that the scripts, kubeadm and kube-proxy call", async () => {
    const installed = healthy.callsOf("apt-get").flatMap((call) => {
      const [, packages] = call.split(" --allow-change-held-packages ");
      return packages === undefined ? [] : [packages];
    });

    expect(installed).toEqual([
      "ca-certificates conntrack curl ethtool ipset iptables ipvsadm jq nftables socat",
      "containerd docker.io",
      "kubelet=9.9.9-* kubeadm=9.9.9-* kubectl=9.9.9-*",
    ]);
  });

  it("installs over packages that an earlier try has held", async () => {
    const installs = healthy.callsOf("apt-get").filter((call) => / install /.test(call));

    expect(installs).toHaveLength(3);
    for (const call of installs) expect(call).toContain(" --allow-change-held-packages ");
  });

  it("has the kernel forward packets, and bridged ones meet iptables", async () => {
    expect(healthy.read("/etc/sysctl.d/90-zoned.conf").trim().split("\n")).toEqual([
      "net.ipv4.ip_forward = 1",
      "net.bridge.bridge-nf-call-iptables = 1",
      "net.bridge.bridge-nf-call-ip6tables = 1",
      "fs.inotify.max_user_instances = 8192",
      "fs.inotify.max_user_watches = 524288",
    ]);
    expect(healthy.callsOf("sysctl")).toEqual(["--load /etc/sysctl.d/90-zoned.conf"]);
  });

  it("keeps networkd from taking the pod network's routes away when it restarts", () => {
    expect(healthy.read("/etc/systemd/networkd.conf.d/zoned.conf")).toBe(
      "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n",
    );
  });

  it("turns swap off for good", async () => {
    expect(healthy.callsOf("systemctl")).toContain("mask swap.target");
    expect(healthy.callsOf("swapoff")).toEqual(["--all"]);
    expect(healthy.read("/etc/fstab")).toBe(
      "UUID=1 / ext4 defaults 0 1\n# /swap.img none swap sw 0 0\n",
    );
  });

  it("brings the rule back at every boot, before the kubelet starts a pod", async () => {
    expect(healthy.read("/etc/systemd/system/zoned-firewall.service")).toMatch(
      /^Before=.*kubelet\.service/m,
    );
    // Which starts with no rules at all.
    expect(healthy.read("/etc/systemd/system/zoned-firewall.service")).toMatch(
      /^After=nftables\.service$/m,
    );
    expect(healthy.callsOf("systemctl")).toEqual(
      expect.arrayContaining(["enable zoned-firewall.service", "restart zoned-firewall.service"]),
    );
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
});

it("is accepted by shellcheck, and so are the other scripts", () => {
  const scripts = ["first-boot.sh", "bootstrap.sh", "etcd-snapshot.sh"].map((name) =>
    join(checkout, "cloud-init", name),
  );

  expect(output(installed("shellcheck", "shellcheck"), scripts)).toBe("");
});

it("changes nothing where it has ended well before", async () => {
  const healthy = machine();
  await boot(healthy);
  healthy.forgetCalls();

  expect(await boot(healthy)).toMatchObject({ code: 0, stdout: "" });

  expect(healthy.calls).toEqual([]);
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

  const { code } = await boot(broken);

  expect(code).toBe(1);
  expect(broken.read(failure)).toBe("kernel modules, exit code 1\n");
  expect(broken.read("/var/log/zoned.log")).toContain(`has no module ${needed}: take an image`);
});

it("goes on with a warning where a scheduler is missing that nobody may have chosen", async () => {
  const poor = machine();
  poor.program("modprobe", "[[ $* != ip_vs_fo ]]");

  expect((await boot(poor)).code).toBe(0);

  expect(poor.read("/var/log/zoned.log")).toContain(
    "no ip_vs_fo, so the proxy scheduler fo cannot be chosen",
  );
  expect(poor.read("/etc/modules-load.d/zoned.conf").split("\n")).not.toContain("ip_vs_fo");
});

it("takes rarer modules from the package that some kernels keep them in", async () => {
  const split = machine();
  split.program("uname", "echo 6.0-azure");
  split.program("apt-cache", '[[ $* == *"show linux-modules-extra-6.0-azure" ]]');
  split.program(
    "apt-get",
    '[[ $* == *linux-modules-extra-6.0-azure* ]] && touch "$root/extra"; exit 0',
  );
  split.program("modprobe", "[[ -e $root/extra ]]");

  expect((await boot(split)).code).toBe(0);
});

it("tries again what can be tried again, with longer and longer pauses", async () => {
  const shaky = machine();
  shaky.program(
    "apt-get",
    '[[ $* == *update ]] || exit 0; echo x >>"$root/tries"; [[ $(wc -l <"$root/tries") -gt 3 ]] || exit 100',
  );

  expect((await boot(shaky)).code).toBe(0);

  expect(shaky.callsOf("sleep")).toEqual(["5", "10", "20"]);
});

it("asks the archive anew when it has not what it said it had", async () => {
  const moved = machine();
  moved.program(
    "apt-get",
    `case $* in
      *update) echo x >>"$root/updates" ;;
      *install*kubelet*) (($(wc -l <"$root/updates") > 1)) || exit 100 ;;
    esac`,
  );

  expect((await boot(moved)).code).toBe(0);

  expect(moved.callsOf("sleep")).toEqual([]);
});

const locks = [
  "lib/dpkg/lock-frontend",
  "lib/dpkg/lock",
  "lib/apt/lists/lock",
  "cache/apt/archives/lock",
];

it.each(locks)(
  "waits for who holds /var/%s, as apt itself does not for all of them",
  async (lock) => {
    const busy = machine();
    for (const one of locks) busy.write(`/var/${one}`, "");
    busy.program(
      "apt-get",
      `python3 -c 'import fcntl, sys
for path in sys.argv[1:]: fcntl.lockf(open(path, "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
' $root/var/{${locks.join(",")}} || exit 100`,
    );
    const holder = spawn("python3", [
      "-c",
      "import fcntl, sys, time\nfile = open(sys.argv[1], 'r+')\nfcntl.lockf(file, fcntl.LOCK_EX)\nprint(flush=True)\ntime.sleep(2)",
      join(busy.root, "var", lock),
    ]);
    await once(holder.stdout, "data");

    expect((await boot(busy)).code).toBe(0);

    expect(busy.callsOf("sleep")).toEqual([]);
  },
);

it("keeps upgrades in the background from beginning, and lets them begin again where nobody had switched them off", async () => {
  const healthy = machine();
  await boot(healthy);
  expect(healthy.callsOf("systemctl")[0]).toBe("stop apt-daily.timer apt-daily-upgrade.timer");
  healthy.forgetCalls();
  healthy.program("systemctl", '[[ $* != "is-enabled --quiet apt-daily-upgrade.timer" ]]');

  await healthy.run("/opt/zoned/first-boot.sh", ["resume_upgrades"]);

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

  expect((await boot(shaky)).code).toBe(0);
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

it("names the step that filled the disk", async () => {
  const full = machine();
  full.mount("/var", 256);
  full.program("swapoff", 'yes >>"$root/var/log/zoned.log"');

  expect((await boot(full)).code).toBe(1);

  expect(full.read(failure)).toBe("swap off, exit code 1\n");
});

it("stops a step that hangs, with all that it started, and names it", async () => {
  const hanging = machine();
  hanging.program("swapoff", 'echo $$ >"$root/hanging"; exec /bin/sleep 300');

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
});

it("names every host that it cannot connect to, those of the distribution's archive among them", async () => {
  const shut = machine({ MIRROR: "" });
  shut.program("apt-get", "echo http://azure.archive.example/ubuntu/");
  shut.program(
    "timeout",
    `[[ $* == */dev/tcp/* ]] && { [[ $* == *" pkgs.k8s.io "* ]]; exit; }; shift 2; exec "$@"`,
  );

  expect((await boot(shut)).code).toBe(1);

  expect(shut.read("/var/log/zoned.log")).toContain(
    "no connection to azure.archive.example port 80,prod-cdn.packages.k8s.io port 443,registry.k8s.io port 443: look at",
  );
});

it("only says so where the registries of add-ons cannot be reached, which a cluster may not need", async () => {
  const partly = machine({ MIRROR: "" });
  partly.program(
    "timeout",
    `[[ $* == */dev/tcp/* ]] || { shift 2; exec "$@"; }; [[ $* != *quay.io* ]]`,
  );

  const { code, stdout } = await partly.run("/opt/zoned/first-boot.sh", ["check_egress"]);

  expect(code).toBe(0);
  expect(stdout).toContain("no connection to quay.io port 443, where images of add-ons come from");
});

it.each([
  { runtime: "docker", socket: "unix:///run/containerd/containerd.sock" },
  { runtime: "cri-dockerd", socket: "unix:///run/cri-dockerd.sock" },
])("brings crictl where there is a package of it, for $runtime", async ({ runtime, socket }) => {
  const healthy = machine({ CONTAINER_RUNTIME: runtime });
  healthy.program("apt-cache", '[[ $* == *"show cri-tools" ]]');
  await boot(healthy);

  expect(healthy.callsOf("apt-get").join("\n")).toContain("kubectl=9.9.9-* cri-tools");
  expect(healthy.read("/etc/crictl.yaml")).toBe(`runtime-endpoint: ${socket}\n`);
});

it("takes Kubernetes from its own minor's repository where there is no mirror", async () => {
  const official = machine({ MIRROR: "" });
  official.program("timeout", `[[ $* == */dev/tcp/* ]] || { shift 2; exec "$@"; }`);
  official.program(
    "apt-get",
    '[[ $* != *update ]] || cp "$root/etc/apt/sources.list.d/zoned.list" "$root/list"',
  );
  official.program(
    "python3",
    '[[ $2 == *urlopen* ]] && { echo "$3" >>"$root/fetched"; echo key >"$4"; exit; }; exec /usr/bin/env -i /usr/bin/python3 "$@"',
  );

  expect((await boot(official)).code).toBe(0);

  const source = "https://pkgs.k8s.io/core:/stable:/v9.9/deb";
  expect(official.read("/fetched")).toBe(`${source}/Release.key\n`);
  expect(official.read("/list")).toContain(` ${source}/ /\n`);
  // Its key expires, and a machine's every update with it.
  expect(official.has("/etc/apt/sources.list.d/zoned.list")).toBe(false);
  expect(official.has("/etc/apt/keyrings/zoned.asc")).toBe(false);
  expect(official.has("/etc/containerd/certs.d")).toBe(false);
});

it("leaves Docker out where containerd is asked for alone", async () => {
  const plain = machine({ CONTAINER_RUNTIME: "containerd" });
  await boot(plain);

  expect(plain.callsOf("apt-get").filter((call) => call.includes("docker"))).toEqual([]);
  expect(plain.has("/etc/docker/daemon.json")).toBe(false);
});

it.each([
  {
    program: "containerd",
    version: "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1",
    says: "containerd is 1.6.20~ds1 here, and version 1.7.24",
  },
  {
    program: "dockerd",
    version: "Docker version 20.10.24+dfsg1, build 297e128",
    says: "Docker is 20.10.24+dfsg1, here, and version 26.0.0",
  },
])("refuses a $program that is too old", async ({ program, version, says }) => {
  const old = machine();
  old.program(program, `echo "${version}"`);

  expect((await boot(old)).code).toBe(1);

  expect(old.read(failure)).toBe("container runtime, exit code 1\n");
  expect(old.read("/var/log/zoned.log")).toContain(says);
});

it("counts a distribution's 1.7.24~ds1 as 1.7.24", async () => {
  const debian = machine();
  debian.program(
    "containerd",
    `case $* in
      --version) echo "containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6" ;;
      "config default") echo "version = 2" ;;
    esac`,
  );

  expect((await boot(debian)).code).toBe(0);
});

/** containerd's file as this version of it would read it, in its own words. */
const containerdReads = async (containerd: string) => {
  const healthy = machine();
  healthy.program(
    "containerd",
    `[[ $1 == --version ]] && { echo "x y 1.7.24"; exit; }; exec ${containerd} "$@"`,
  );
  expect((await boot(healthy)).code).toBe(0);
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
    await boot(healthy);

    const text = healthy.read("/etc/containerd/config.toml");

    expect(text.split("\n")[0]).toBe(`version = ${version}`);
    expect(text).toContain(
      `[plugins.'${plugin}'.containerd.runtimes.runc.options]\n  SystemdCgroup = true`,
    );
  },
);

it.each([
  { unit: "zoned-firewall.service", step: "firewall for pods" },
  { unit: "containerd.service", step: "containerd settings" },
  { unit: "docker.service", step: "containerd settings" },
])("repeats what $unit said of why it did not start", async ({ unit, step }) => {
  const broken = machine();
  broken.program("systemctl", `[[ $* != *"start ${unit}" ]]`);
  broken.program("journalctl", `[[ $* == *"--unit ${unit}"* ]] && echo "its own words"`);

  expect((await boot(broken)).code).toBe(1);

  expect(broken.read(failure)).toBe(`${step}, exit code 1\n`);
  expect(broken.read("/var/log/zoned.log")).toContain("its own words");
});

it.each(
  late.flatMap(({ path, text }) => {
    const unit = /system\/(.+)\.d\//.exec(path)?.[1];
    const file = /^ConditionPathExists=(.+)$/m.exec(text)?.[1];
    return unit && file ? [{ unit, file }] : [];
  }),
)(
  "has written $file when it starts $unit, which the simulated base image makes wait for it",
  async ({ unit, file }) => {
    const healthy = machine();
    healthy.program("systemctl", `[[ $* != *"start ${unit}" || -e $root${file} ]]`);
    healthy.program("journalctl", "");

    expect((await boot(healthy)).code).toBe(0);

    expect(healthy.callsOf("systemctl").join()).toContain(`start ${unit}`);
  },
);

it("asks the mirror's host for every image first", async () => {
  const healthy = machine({ MIRROR: `${mirror}/below` });
  shelf.set("/below/apt/Release.key", "key");
  await boot(healthy);

  expect(healthy.read("/etc/containerd/certs.d/_default/hosts.toml")).toBe(
    `[host."${mirror}"]\n  capabilities = ["pull", "resolve"]\n`,
  );
});

describe("with dockerd under the kubelet", () => {
  const settings = { CONTAINER_RUNTIME: "cri-dockerd" };

  it("installs cri-dockerd from the archive that the mirror vouches for", async () => {
    const healthy = machine(settings);

    expect((await boot(healthy)).code).toBe(0);

    expect(healthy.read("/usr/local/bin/cri-dockerd")).toBe("the program");
    expect(healthy.read("/etc/systemd/system/cri-dockerd.service")).toMatch(
      /--pod-infra-container-image registry\.k8s\.io\/pause:3\.99$/m,
    );
  });

  it("refuses an archive with another checksum", async () => {
    const broken = machine(settings);
    shelf.set("/cri-dockerd/cri-dockerd-0.9.9.amd64.tgz", archiveOf("another program"));

    expect((await boot(broken)).code).not.toBe(0);

    expect(broken.read(failure)).toMatch(/^cri-dockerd, /);
    expect(broken.has("/usr/local/bin/cri-dockerd")).toBe(false);
  });

  it("takes images from the mirror by their own names, since dockerd redirects Docker Hub only", async () => {
    const healthy = machine(settings);
    await boot(healthy);

    const host = mirror.slice("http://".length);
    expect(healthy.callsOf("docker")).toEqual(
      images.flatMap((image) => {
        const here = image.replace("registry.k8s.io", host);
        return [`pull ${here}`, `tag ${here} ${image}`];
      }),
    );
    expect(JSON.parse(healthy.read("/etc/docker/daemon.json"))).toMatchObject({
      "registry-mirrors": [mirror],
      "insecure-registries": [host],
    });
  });
});
