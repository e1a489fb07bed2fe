import { run } from "../../../../shared/run";

/**
 * The base image's own recipe: a Debian 13 as a cloud has it, with what first-boot.sh would have to
 * install.
 */

/** The release of Debian that base image and QEMU are taken from. */
export const release = "trixie";

const official = "http://deb.debian.org/debian";

/** Where this host takes Debian's packages from, which may be a mirror near it. */
export async function debianArchive(): Promise<string> {
  try {
    const targets = await run([
      ...["apt-get", "indextargets", "--format", "$(REPO_URI)"],
      ...["Created-By: Packages", "Origin: Debian", "Label: Debian"],
    ]);
    return targets.split("\n")[0]?.trim().replace(/\/+$/, "") || official;
  } catch {
    return official;
  }
}

/** What makes it a machine of a cloud. */
const system = [
  ...["linux-image-cloud-amd64", "initramfs-tools", "zstd", "systemd-sysv", "systemd-resolved"],
  ...["dbus", "udev", "kmod", "iproute2", "iputils-ping", "procps", "sudo", "e2fsprogs"],
  ...["cloud-init", "qemu-guest-agent", "ca-certificates", "apt", "less", "login"],
];

/**
 * What first-boot.sh installs: here already, since an emulated processor takes minutes to unpack it.
 */
const firstBoot = [
  ...["conntrack", "curl", "ethtool", "ipset", "iptables", "ipvsadm", "jq", "nftables", "socat"],
  ...["containerd", "runc", "docker.io", "docker-cli"],
];

export const packages = [...system, ...firstBoot] as const;

/** Needed before the root file system is there; all else would only make the first stage larger. */
const earlyModules = ["virtio_pci", "virtio_blk", "ext4"];

/**
 * Of cloud-init's modules those for the keys in the customData: an emulated processor takes ten
 * seconds to load the rest.
 */
const cloudInit = `datasource_list: [NoCloud, None]
disable_root: false
ssh_deletekeys: false
ssh_genkeytypes: []
growpart: {mode: "off"}
resize_rootfs: false
cloud_config_modules: [runcmd]
cloud_final_modules: [write_files_deferred, scripts_user, final_message]
`;

const rootConsole = `[Service]
ExecStart=
ExecStart=-/sbin/agetty --autologin root --noclear %I dumb
TTYReset=no
TTYVTDisallocate=no
`;

/**
 * Docker is on from the start, as its package leaves it: to switch it on takes an emulated processor
 * eight seconds.
 */
const withSettings = "[Unit]\nConditionPathExists=/etc/docker/daemon.json\n";

/**
 * Docker asks for it at boot, where it would only stand in cloud-init's way until first-boot.sh
 * starts it anew.
 */
const behindFirewall = "[Unit]\nConditionPathExists=/etc/zoned/firewall.nft\n";

/**
 * runc copies itself into memory before each container that it makes and each command in one, so
 * that nothing in there can change it, and an emulated processor translates every copy anew: 12 s
 * instead of 2 to 6. A program that cannot be written to it need not copy, if a variable says so.
 */
const runc = {
  mount: "/usr/sbin/runc /usr/sbin/runc none bind,ro 0 0",
  settings: "[Service]\nEnvironment=_LIBCONTAINER_CLONED_BINARY=1\n",
};

/**
 * A kernel's argument by which a machine waits, before cloud-init does anything, until it is
 * plugged in.
 */
export const waitsForItsOwn = "zoned.snapshot";

/** What such a machine says on its console once it waits. */
export const waiting = "zoned: waiting for a seed and a network interface";

/**
 * A machine that goes on from a snapshot knows the time of then, and what its firmware said to
 * another. The journal lies in a folder of the machine's identity.
 */
const becomeItself = `
date --set="@$(cat /sys/class/rtc/rtc0/since_epoch)"
mkdir /run/seed
mount -o ro /dev/disk/by-label/cidata /run/seed
sed -n "s/^instance-id: //p" /run/seed/meta-data >/run/product_uuid
umount /run/seed
chmod 400 /run/product_uuid
mount --bind /run/product_uuid /sys/class/dmi/id/product_uuid
tr -d - </run/product_uuid >/etc/machine-id
systemctl restart systemd-journald.service
`;

const snapshotUnit = `[Unit]
Description=Wait for what makes this machine one of its kind
DefaultDependencies=no
ConditionKernelCommandLine=${waitsForItsOwn}
After=cloud-init-main.service systemd-journal-flush.service systemd-tmpfiles-setup.service
After=systemd-udev-trigger.service systemd-resolved.service
Before=cloud-init-local.service

[Service]
Type=oneshot
RemainAfterExit=yes
StandardOutput=journal+console
TimeoutStartSec=infinity
ExecStart=udevadm settle
ExecStart=echo "${waiting}"
ExecStart=udevadm wait /dev/disk/by-label/cidata /sys/class/net/eth0
ExecStart=sh -e /usr/local/lib/zoned/become-itself

[Install]
WantedBy=cloud-init.target
`;

interface ImageFile {
  readonly path: string;
  readonly text: string;
}

/** Written before the kernel is installed, whose installation makes the first stage. */
export const early: readonly ImageFile[] = [
  { path: "/etc/initramfs-tools/conf.d/zoned", text: "MODULES=list\nCOMPRESS=zstd\n" },
  { path: "/usr/share/initramfs-tools/modules.d/zoned", text: `${earlyModules.join("\n")}\n` },
];

export const late: readonly ImageFile[] = [
  // Pods of a machine with one processor weigh 39 to the 100 of kubelet and runc: etcd would get an
  // eighth of it.
  { path: "/etc/systemd/system/system.slice.d/zoned.conf", text: "[Slice]\nCPUWeight=20\n" },
  { path: "/etc/fstab", text: `/dev/vda / ext4 noatime,errors=remount-ro 0 0\n${runc.mount}\n` },
  { path: "/etc/hostname", text: "localhost\n" },
  { path: "/etc/apt/sources.list", text: "" },
  { path: "/etc/cloud/cloud.cfg.d/90_zoned.cfg", text: cloudInit },
  { path: "/etc/systemd/system/serial-getty@hvc0.service.d/zoned.conf", text: rootConsole },
  { path: "/etc/systemd/system/docker.service.d/zoned.conf", text: withSettings },
  {
    path: "/etc/systemd/system/containerd.service.d/zoned.conf",
    text: `${behindFirewall}\n${runc.settings}`,
  },
  { path: "/etc/systemd/system/zoned-snapshot.service", text: snapshotUnit },
  { path: "/usr/local/lib/zoned/become-itself", text: becomeItself },
];

/**
 * Run in the finished system: services that first-boot.sh starts, when it does, with its settings.
 * systemd runs all generators at each daemon-reload, of which kubeadm asks one: a busy emulated
 * processor took 14 s for twelve of them.
 */
export const finishing = `
systemctl disable docker.socket containerd.service nftables.service ipvsadm.service
systemctl mask apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer
systemctl mask e2scrub_reap.service getty@tty1.service systemd-binfmt.service
systemctl mask modprobe@drm.service modprobe@configfs.service modprobe@fuse.service modprobe@efi_pstore.service
systemctl mask modprobe@dm_mod.service modprobe@loop.service systemd-network-generator.service
systemctl enable systemd-networkd.service systemd-resolved.service serial-getty@hvc0.service
systemctl enable zoned-snapshot.service
mkdir -p /etc/systemd/system-generators
for name in gpt-auto hibernate-resume rc-local run ssh system-update sysv tpm2; do
  ln -s /dev/null /etc/systemd/system-generators/systemd-$name-generator
done
ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
rm -f /etc/machine-id /var/lib/dbus/machine-id
touch /etc/machine-id /etc/.updated /var/.updated
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
`;

/** What first-boot.sh asks apt for. */
const wanted = [
  ...["ca-certificates", ...firstBoot],
  ...["kubelet", "kubeadm", "kubectl"].map((name) => `"${name}=$kubernetes-*"`),
  "cri-tools",
];

/**
 * Installs the mirror's packages in the base image's system, and imports the mirror's images with
 * the system's own containerd. Bash; its arguments are the system's folder, the mirror's, the
 * Kubernetes version, and images that are left out. It runs in namespaces of its own: mounts and
 * processes end with it.
 */
export const installKubernetes = `
root=$1
mirror=$2
export kubernetes=$3 left_out="\${*:4}"
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount --bind /dev "$root/dev"
printf '#!/bin/sh\\nexit 101\\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
mkdir "$root/run/mirror"
mount --bind "$mirror" "$root/run/mirror"
chroot "$root" bash -o pipefail -ec '
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
cp /run/mirror/apt/Release.key /run/mirror.asc
echo "deb [signed-by=/run/mirror.asc] file:/run/mirror/apt /" >/run/mirror.list
apt="apt-get -o Dir::Etc::SourceList=/run/mirror.list -o Dir::Etc::SourceParts=- -o APT::Sandbox::User=root"
$apt update
$apt install --yes --no-install-recommends ${wanted.join(" ")}
systemctl disable kubelet.service
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
cat >/run/containerd.toml <<END
version = 2
disabled_plugins = ["io.containerd.grpc.v1.cri"]
END
containerd --config /run/containerd.toml --address /run/containerd.sock >/run/containerd.log 2>&1 &
daemon=$!
i=0
until ctr --address /run/containerd.sock version >/dev/null 2>&1; do
  i=$((i + 1))
  if [ $i -gt 60 ]; then cat /run/containerd.log >&2; exit 1; fi
  sleep 0.5
done
images="ctr --address /run/containerd.sock --namespace k8s.io images"
tar --create --directory /run/mirror/images . | $images import -
if [ -n "$left_out" ]; then $images rm --sync $left_out; fi
kill $daemon
wait $daemon || true
'
rm "$root/usr/sbin/policy-rc.d"
umount "$root/run/mirror" "$root/dev" "$root/run" "$root/sys" "$root/proc"
`;
