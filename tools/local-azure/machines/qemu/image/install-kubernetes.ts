import { firstBoot } from "./debian";

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
