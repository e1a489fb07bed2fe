import { firstBoot } from "./debian";

/** What first-boot.sh asks apt for. */
const wanted = [
  ...["ca-certificates", ...firstBoot],
  ...["kubelet", "kubeadm", "kubectl"].map((name) => `"${name}=$kubernetes-*"`),
  "cri-tools",
];

/**
 * What is done in the base image's system, so that a machine finds all that its first boot asks
 * for: the mirror's packages are installed, and its images, which lie in /var/tmp/zoned, imported
 * by the system's own containerd. Bash; its arguments are the system's folder, the mirror's,
 * and the Kubernetes version. It
 * runs in namespaces of its own: mounts and processes end with it.
 */
export const installKubernetes = `
root=$1
mirror=$2
export kubernetes=$3
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount --bind /dev "$root/dev"
printf '#!/bin/sh\\nexit 101\\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
goods=/var/tmp/zoned
mkdir "$root/run/apt-mirror"
mount --bind "$mirror/apt" "$root/run/apt-mirror"
chroot "$root" sh -ec '
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
cp /run/apt-mirror/Release.key /run/mirror.asc
echo "deb [signed-by=/run/mirror.asc] file:/run/apt-mirror /" >/run/mirror.list
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
ctr --address /run/containerd.sock --namespace k8s.io images import '"$goods"'/images.tar
kill $daemon
wait $daemon || true
'
rm "$root/usr/sbin/policy-rc.d"
umount "$root/run/apt-mirror" "$root/dev" "$root/run" "$root/sys" "$root/proc"
`;
