import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

import { bootstrapText, cloudInitText } from "../../components/machine/payload";
import { versions } from "../../components/versions";
import { testFolder } from "./test-folder";
import { built, installed, Outcome, run } from "./tools";

/**
 * The system's own of a program that a fake stands before; a version manager's takes ten times as
 * long to begin.
 */
const realOf = (program: string) =>
  execFileSync("bash", ["-c", `PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH command -v ${program}`], {
    encoding: "utf8",
  }).trim();
const real = { sleep: realOf("sleep"), timeout: realOf("timeout"), python3: realOf("python3") };

const answers = testFolder();

const disks: string[] = [];
afterAll(() => disks.forEach((disk) => execFileSync("umount", [disk])));

/**
 * jq compiles its own library at each start, which takes longer than all else that a script does here:
 * the real one is asked the same once. What depends on the time or on a file is asked anew.
 */
const jq = `real=${installed("jq", "jq")}
  [[ ! $* =~ (^|[^a-z])now([^a-z]|$) && ! -e \${*: -1} ]] || exec $real "$@"
  input=
  [[ $* == *--null-input* ]] || input=$(</dev/stdin)
  asked="$*"$'\\n'$input
  for known in ${answers}/\${#asked}.*; do
    [[ -e $known ]] && . "$known" && [[ $question == "$asked" ]] && { printf %s "$answer"; exit "$code"; }
  done
  question=$asked answer=$($real "$@" <<<"$input"; echo "code=$?")
  code=\${answer##*code=} answer=\${answer%code=*}
  printf %s "$answer"
  if ((code < 2)); then
    declare -p question answer code >"${answers}/$$"
    mv "${answers}/$$" "${answers}/\${#asked}.$$"
  fi
  exit "$code"`;

/** In the record of calls: what separates words, and what stands for a newline in one. */
const [between, newline] = ["\x1f", "\x1e"];

/**
 * A folder that stands for a machine, and small programs before the system's own on its path.
 *
 * Each writes down what it was called with, then does what the test says, in bash. `$root` is the
 * folder.
 */
export class FakeMachine {
  readonly root = testFolder();
  private readonly programs = join(this.root, "programs");
  private readonly callsPath = join(this.root, "calls");

  constructor(programs: Readonly<Record<string, string>>) {
    mkdirSync(this.programs);
    writeFileSync(this.callsPath, "");
    this.write("/etc/hosts", "127.0.0.1 localhost\n");
    this.write("/etc/fstab", "UUID=1 / ext4 defaults 0 1\n/swap.img\tnone\tswap\tsw\t0\t0\n");
    // Waits are cut short. A function that a test knows to wait in vain has its time up when it waits,
    // however long it took to come to that; SIGALRM is what `timeout` has at its own end.
    this.program(
      "sleep",
      `[[ -z \${LIMITED_BY:-} ]] || kill -ALRM "$LIMITED_BY"; exec ${real.sleep} 0.02`,
    );
    this.program(
      "timeout",
      `stumbles="$root/stumbles/\${*: -1}"
      if [[ -e $stumbles ]]; then
        read -r left <"$stumbles"
        if ((left > 0)); then echo $((left - 1)) >"$stumbles"; exit 7; fi
      fi
      [[ \${*: -1} != \${HANGS:-} ]] || export LIMITED_BY=$$; exec ${real.timeout} "$@"`,
    );
    this.program("python3", `exec ${real.python3} "$@"`);
    this.program("jq", jq);
    for (const [name, text] of Object.entries(programs)) this.program(name, text);
  }

  program(name: string, text: string): void {
    const path = join(this.programs, name);
    // Fakes of one pipeline run side by side, and bash writes a line at once, not more.
    const log = `note() { local IFS=$'${between}'; printf '%s\\n' "\${*//$'\\n'/$'${newline}'}" >>${this.callsPath}; }; note "${name}" "$@"`;
    writeFileSync(path, `#!/bin/bash\nroot=${this.root}\n${log}\n${text}\n`);
    chmodSync(path, 0o755);
  }

  write(path: string, text: string, mode = 0o644): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text, { mode });
  }

  /** Lets the first tries of these functions fail, so many of each. */
  stumble(tries: Readonly<Record<string, number>>): void {
    for (const [step, times] of Object.entries(tries))
      this.write(`/stumbles/${step}`, `${times}\n`);
  }

  /** How often these functions would still fail. */
  get stumblesLeft(): Record<string, number> {
    const steps = readdirSync(join(this.root, "stumbles"));
    return Object.fromEntries(steps.map((step) => [step, Number(this.read(`/stumbles/${step}`))]));
  }

  /** Mounts a disk of so many KiB, with nothing on it, where `path` is. */
  mount(path: string, kib: number): void {
    const disk = join(this.root, path);
    mkdirSync(disk, { recursive: true });
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${kib}k`, "zoned-test", disk]);
    disks.push(disk);
  }

  /** A script of `cloud-init/`, put on the machine with what follows it there. */
  ship(name: string, path: string, more = ""): void {
    const text = name === "bootstrap.sh" ? bootstrapText() : cloudInitText(name);
    this.write(path, `${text}${more}`, 0o700);
  }

  has(path: string): boolean {
    return existsSync(join(this.root, path));
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), "utf8");
  }

  async run(
    path: string,
    args: readonly string[] = [],
    env: Record<string, string> = {},
  ): Promise<Outcome> {
    return run("bash", [join(this.root, path), ...args], {
      PATH: `${this.programs}:${process.env["PATH"]}`,
      ZONED_ROOT: this.root,
      ...env,
    });
  }

  /** Every call of a fake, as words. */
  get calls(): string[][] {
    return readFileSync(this.callsPath, "utf8")
      .split("\n")
      .filter((call) => call !== "")
      .map((call) => call.split(between).map((word) => word.replaceAll(newline, "\n")));
  }

  /** Calls of one program, each as a line, without the folder's own name. */
  callsOf(program: string): string[] {
    return this.calls
      .filter(([name]) => name === program)
      .map(([, ...args]) => args.join(" ").replaceAll(this.root, ""));
  }

  removeFile(path: string): void {
    rmSync(join(this.root, path));
  }

  forgetCalls(): void {
    writeFileSync(this.callsPath, "");
  }
}

/** Once, what a step runs kills the script above it, goes on for three seconds, and says so if it does not hold the lock itself. */
export const killsItsScript = `[[ ! -e $root/killed ]] || exit 0
  touch "$root/killed"
  above() { cut --delimiter ' ' --fields 4 "/proc/$1/stat"; }
  kill -KILL "$(above "$(above "$PPID")")"
  /bin/sleep 3
  [[ -e /proc/$$/fd/9 ]] || echo "the step has ended"`;

/** The real kubeadm, which knows only /etc/kubernetes: that is this machine's inside of a mount namespace. */
export const realKubeadm = (): string => `exec unshare --mount bash -c '
  mkdir -p "$0/etc/kubernetes/manifests"
  mount -t tmpfs zoned-test /etc && mkdir -p /etc/kubernetes /etc/zoned/patches &&
  mount --rbind "$0/etc/kubernetes" /etc/kubernetes
  exec ${built("kubeadm")} "$@"' "$root" "$@"`;

/** A unit is there, and is active, where a package or a test has left its file. */
export const systemctl = `is_there() { [[ -e $root/usr/lib/systemd/system/$1 ]]; }
  case $1 in
    is-active) is_there "\${*: -1}" || exit 4 ;;
    try-restart) for unit in "\${@:2}"; do
      is_there "$unit" || { echo "Failed to try-restart $unit: Unit $unit not found." >&2; exit 5; }
    done ;;
  esac`;

/** Programs that a first boot finds or installs, which do nothing but say their versions, and which images they need. */
export const firstBootPrograms = (images: readonly string[]): Readonly<Record<string, string>> => ({
  "apt-get": "",
  "apt-cache": "exit 100",
  "apt-mark": "",
  modprobe: "",
  sysctl: "",
  swapoff: "",
  systemctl,
  containerd: `case $* in
    --version) echo "containerd github.com/containerd/containerd/v2 2.2.1 abcdef" ;;
    "config default") echo "version = 3" ;;
  esac`,
  "dpkg-query": 'for path in "${@:2}"; do echo "package-of-$(basename "$path"): $path"; done',
  runc: "",
  dockerd: 'echo "Docker version 29.1.3+dfsg1, build abc"',
  docker: "",
  kubelet: "",
  kubectl: "",
  kubeadm: `case $* in "config images list"*) printf '%s\\n' ${images.join(" ")} ;; esac`,
});

const firstBootSettings = {
  KUBERNETES_VERSION: "9.9.9",
  ETCD_IMAGE_TAG: "9.9.8-0",
  CONTAINER_RUNTIME: "docker",
  CONTAINERD_AT_LEAST: "1.7.24",
  DOCKER_AT_LEAST: versions.dockerAtLeast,
  CRI_DOCKERD_VERSION: "0.9.9",
  CREDENTIAL_PROVIDER_VERSION: "",
  MIRROR: "",
};
export type FirstBootSettings = Partial<typeof firstBootSettings>;

/** Brings first-boot.sh and what it is told. */
export function shipFirstBoot(machine: FakeMachine, settings: FirstBootSettings = {}): void {
  machine.ship("first-boot.sh", "/opt/zoned/first-boot.sh");
  setFirstBoot(machine, settings);
}

/** Tells it something else. */
export function setFirstBoot(machine: FakeMachine, settings: FirstBootSettings): void {
  const lines = Object.entries({ ...firstBootSettings, ...settings }).map(
    ([name, value]) => `${name}='${value}'\n`,
  );
  machine.write("/etc/zoned/first-boot.env", lines.join(""));
}
