#!/usr/bin/env bash
# The first half of what happens on a machine: all that needs no other machine. It may be run again.
#
# Values come from /etc/zoned/first-boot.env, and nothing else tells machines apart. With MIRROR set,
# everything comes from there, and nothing from the internet:
#   $MIRROR/apt/          a flat apt repository as pkgs.k8s.io has it, signed, its public key in
#                         Release.key, with every package named here that the machine's image lacks
#   $MIRROR/cri-dockerd/  cri-dockerd's release archive, its SHA-256 beside it in <archive>.sha256
#   $MIRROR/credential-provider/  the same of Azure's credential provider
#   https://host/v2/      a registry at the mirror's host; each image under the name it has upstream,
#                         without the registry (registry.k8s.io/coredns/coredns is coredns/coredns).
#                         What it lacks is asked of the image's own registry.
#
# A machine of an image that generalize.sh was run for has /opt/zoned/image, which says what it brings. Where
# that is all that is needed, it is verified, and nothing is fetched.
#
# Ends with /var/lib/zoned/first-boot.done, or with first-boot.failed beside it, which names the step.
set -Eeuo pipefail
umask 022
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# Empty on a machine; tests put a folder of their own here.
root=${ZONED_ROOT:-}
log=$root/var/log/zoned.log
state=$root/var/lib/zoned
image=$root/opt/zoned/image

# shellcheck source=/dev/null
. "$root/etc/zoned/first-boot.env"
: "$KUBERNETES_VERSION" "$ETCD_IMAGE_TAG" "$CONTAINER_RUNTIME" "$CONTAINERD_AT_LEAST" "$DOCKER_AT_LEAST"
: "$CRI_DOCKERD_VERSION" "$CREDENTIAL_PROVIDER_VERSION" "$MIRROR"

# Empty where the internet is reached without a proxy.
proxy=$root/etc/zoned/proxy
if [[ -s $proxy.env ]]; then
  set -a
  # shellcheck source=/dev/null
  . "$proxy.env"
  set +a
fi

export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1

say() { TZ=UTC0 printf '%(%Y-%m-%dT%H:%M:%SZ)T %s\n' -1 "$*"; }

# What a step's process says of the command that ended it.
report_failure() { say "exit code $1 of: ${2%%$'\n'*} (line $3)" >&2; }

# To the log, and to the console, which is what Azure's boot diagnostics show. A full disk, which the
# log cannot be written to, ends nothing here: what is at work would end without a word.
note() {
  local line
  line=$(say "first boot: $*")
  { echo "$line"; echo "$line" >>"$log"; } || true
}

# step NAME SECONDS RETRIES FUNCTION: runs the function in a process of its own, so that a time
# limit holds for all that it starts, and so that the first command to fail ends it. Its timeout keeps the lock where
# this script is killed meanwhile.
step() {
  local name=$1 limit=$2 retries=$3 function=$4 code pause=5 started
  while :; do
    note "$name: begins"
    started=$SECONDS
    code=0
    timeout --kill-after=15 "$limit" "$BASH" "$0" "$function" >>"$log" 2>&1 || code=$?
    if ((code == 0)); then
      note "$name: done after $((SECONDS - started)) s"
      return
    fi
    ((code == 124 || code == 137 && SECONDS - started >= limit)) && note "$name: stopped, $limit s were not enough"
    ((retries-- > 0)) || break
    note "$name: exit code $code, next try in $pause s"
    sleep "$pause"
    pause=$((pause < 30 ? pause * 2 : 30))
  done
  rm -f "$state/spare"
  note "$name: failed with exit code $code"
  echo "$name, exit code $code" >"$state/first-boot.failed"
  exit "$code"
}

# write PATH [MODE]: standard input becomes that file, whole or not at all.
write() {
  local path=$root$1
  mkdir -p "${path%/*}"
  (umask 077 && cat >"$path.new")
  chmod "${2:-0644}" "$path.new"
  mv "$path.new" "$path"
}

# curl comes with the packages; python3 came with cloud-init.
download() {
  say "fetching $1"
  python3 -c '
import shutil, sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=60) as reply, open(sys.argv[2], "wb") as file:
    shutil.copyfileobj(reply, file)
' "$1" "$2"
}

mirror_origin() { [[ $MIRROR =~ ^(https?://[^/]+) ]] && echo "${BASH_REMATCH[1]}"; }

apt_options=(-o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confold)
if [[ -n $MIRROR ]]; then
  apt_options+=(-o "Dir::Etc::SourceList=$root/etc/apt/sources.list.d/zoned.list"
    -o Dir::Etc::SourceParts=- -o APT::Get::List-Cleanup=0)
fi

# Upgrades in the background hold apt's locks, and one of Azure's agent ends what the agent is running:
# this, or the bootstrap step. They may begin again when that step has ended.
upgrade_timers=(apt-daily.timer apt-daily-upgrade.timer)

pause_upgrades() { systemctl stop "${upgrade_timers[@]}" || true; }

resume_upgrades() {
  local timer
  for timer in "${upgrade_timers[@]}"; do
    # One that was switched off stays off.
    if systemctl is-enabled --quiet "$timer"; then systemctl start "$timer"; fi
  done
}

# apt's own timeout is for dpkg's locks alone (DPkg::Lock::Timeout), and its other two end it at once.
await_apt() {
  python3 -c '
import fcntl, os, sys
for path in sys.argv[1:]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("waiting for", path, flush=True)
            fcntl.lockf(lock, fcntl.LOCK_EX)
' "$root"/var/{lib/dpkg/lock-frontend,lib/dpkg/lock,lib/apt/lists/lock,cache/apt/archives/lock}
}

apt_update() {
  await_apt
  # A failed download is a mere warning otherwise, and a later step fails with a stranger message.
  apt-get "${apt_options[@]}" -o APT::Update::Error-Mode=any update
}

apt_install() {
  say "installing $*"
  # Down, too: a version that was taken back before the machine joined, or while it was upgraded.
  local command=(apt-get "${apt_options[@]}" install --yes --allow-downgrades --no-install-recommends
    --allow-change-held-packages "$@")
  await_apt
  # A try that ran out of time may have left packages half configured, and an archive may have changed
  # since it was asked what it has.
  "${command[@]}" || { dpkg --configure --pending && apt_update && "${command[@]}"; }
}

# bring_up start|restart UNIT: where that fails, systemctl only names the log, which a
# reader of Azure's message cannot open.
bring_up() {
  systemctl "$1" "$2" || {
    journalctl --unit "$2" --lines 20 --no-pager --output cat
    return 1
  }
}

# hold PROGRAM...: keeps the packages that these programs came in as they are.
hold() {
  local program paths=() packages
  for program; do
    paths+=("$(readlink -f "$(command -v "$program")")")
  done
  packages=$(dpkg-query --search "${paths[@]}" | awk -F: '!seen[$1]++ { print $1 }')
  mapfile -t packages <<<"$packages"
  apt-mark hold "${packages[@]}"
}

# at_least NAME FOUND WANTED: what a distribution adds to upstream's version, as in ~ds1, is left out.
at_least() {
  local upstream=${2#v}
  upstream=${upstream%%[~+,-]*}
  dpkg --compare-versions "$upstream" ge "$3" && return
  say "$1 is $2 here, and version $3 or later is needed: take a newer image (zoned:imageVersion)" \
    "or put a newer package into the mirror's apt repository"
  return 1
}

has_other_proxy() { [[ $(cat "$proxy.env" "$proxy-ca.crt") != "$(cat "$state/proxy")" ]]; } 2>/dev/null

# What pulls images inherits it. apt has it in its configuration, and reads what is reached without it from no_proxy alone,
# which upgrades in the background inherit. What runs in containers goes on meanwhile.
set_proxy() {
  local unit mode apt=/etc/apt/apt.conf.d/95zoned-proxy ca=/usr/local/share/ca-certificates/zoned-proxy.crt
  # With a password in it, it is root's alone, and so is what is made of it.
  mode=$(stat --format %a "$proxy.env")
  rm -f "$root$apt" "$root$ca"
  if [[ -s $proxy-ca.crt ]]; then write "$ca" <"$proxy-ca.crt"; fi
  update-ca-certificates --fresh
  {
    [[ -z ${http_proxy-} ]] || echo "Acquire::http::Proxy \"$http_proxy\";"
    # Where none is named for https, apt takes that of http, as nothing else here does.
    [[ -z ${http_proxy-}${https_proxy-} ]] || echo "Acquire::https::Proxy \"${https_proxy:-DIRECT}\";"
  } | write "$apt" "$mode"
  for unit in containerd docker apt-daily apt-daily-upgrade; do
    write "/etc/systemd/system/$unit.service.d/zoned-proxy.conf" <<END
[Service]
EnvironmentFile=-/etc/zoned/proxy.env
END
  done
  systemctl daemon-reload
  # try-restart fails for a unit that is not there.
  for unit in containerd docker; do
    if systemctl is-active --quiet "$unit.service"; then systemctl restart "$unit.service"; fi
  done
  cat "$proxy.env" "$proxy-ca.crt" | write /var/lib/zoned/proxy "$mode"
}

# unreachable ADDRESS...: host and port of each that answers no connection. All are asked at once: where packets are
# dropped, each takes its ten seconds.
unreachable() {
  local address host port
  for address; do
    # An archive may lie on a disk.
    [[ $address =~ ^(https?)://([^/:]+)(:([0-9]+))? ]] || continue
    host=${BASH_REMATCH[2]}
    port=${BASH_REMATCH[4]}
    [[ -n $port ]] || { [[ ${BASH_REMATCH[1]} == https ]] && port=443 || port=80; }
    # shellcheck disable=SC2016 # the inner shell expands them
    timeout 10 "$BASH" -c 'exec 3<>"/dev/tcp/$1/$2"' _ "$host" "$port" || echo "$host port $port" &
  done | sort --unique
}

# Packages come from a host behind pkgs.k8s.io, and from the distribution's archive, which an image may have
# nearby.
check_egress() {
  local missing sources later=() registry
  if [[ -n $MIRROR ]]; then
    sources=("$MIRROR")
  else
    # shellcheck disable=SC2016 # apt's own
    mapfile -t sources < <(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sort --unique)
    sources+=(https://pkgs.k8s.io https://prod-cdn.packages.k8s.io https://registry.k8s.io)
    [[ $CONTAINER_RUNTIME == cri-dockerd ]] && sources+=(https://github.com)
    [[ -z $CREDENTIAL_PROVIDER_VERSION ]] || sources+=(https://packages.aks.azure.com)
    later=(https://mcr.microsoft.com https://quay.io https://registry-1.docker.io https://ghcr.io)
  fi
  # What lies behind a proxy, only the proxy can reach. That of http is none of https, nor the other way about.
  if [[ -s $proxy.env ]]; then
    mapfile -t sources < <({
      printf '%s\n' "${sources[@]}" | sed "${http_proxy:+/^http:/d}; ${https_proxy:+/^https:/d}"
      printf '%s\n' "${http_proxy-}" "${https_proxy-}" "$MIRROR"
    } | sed 's|//[^/]*@|//|; /^$/d' | sort --unique)
    [[ -z ${https_proxy-} ]] || later=()
  fi
  exec 3< <(unreachable "${later[@]}")
  mapfile -t missing < <(unreachable "${sources[@]}")
  while read -r registry; do say "no connection to $registry, where images of add-ons come from"; done <&3
  ((${#missing[@]} == 0)) && return
  say "no connection to $(paste --serial --delimiters , <(printf '%s\n' "${missing[@]}")): look at the subnet's" \
    "NAT gateway, its route table and firewall, and at DNS; for machines without internet set zoned:mirror or zoned:httpProxy"
  return 1
}

add_package_source() {
  local minor=${KUBERNETES_VERSION%.*} base
  base=https://pkgs.k8s.io/core:/stable:/v$minor/deb
  [[ -n $MIRROR ]] && base=$MIRROR/apt
  mkdir -p "$root/etc/apt/keyrings"
  # apt reads an armoured key when the file is called .asc.
  download "$base/Release.key" "$root/etc/apt/keyrings/zoned.asc"
  write /etc/apt/sources.list.d/zoned.list \
    <<<"deb [signed-by=$root/etc/apt/keyrings/zoned.asc] $base/ /"
  apt_update
}

# Its key expires one day, and every update of the machine would fail from then on
# (kubernetes/release #3818).
remove_package_source() {
  [[ -n $MIRROR ]] || rm -f "$root"/etc/apt/{sources.list.d/zoned.list,keyrings/zoned.asc}
}

# Some kernels keep the rarer modules in a package of their own. Beside the one of this kernel, that which
# upgrades bring with the next one, as they do linux-image-azure.
extra_modules() {
  echo "linux-modules-extra-$(uname -r)"
  # shellcheck disable=SC2016 # dpkg's own
  dpkg-query --show --showformat '${db:Status-Abbrev} ${Package}\n' 'linux-image-[!0-9]*' |
    sed --quiet 's/^.i *linux-image-/linux-modules-extra-/p' || true
}

load_modules() {
  local module missing=() loaded=()
  # nft_fib_inet is for the pods' firewall, vxlan for the pod network.
  local needed=(overlay br_netfilter nf_conntrack nft_fib_inet vxlan ip_vs ip_vs_rr ip_vs_wrr ip_vs_sh)
  local wanted=(ip_vs_{lc,wlc,fo,ovf,lblc,lblcr,dh,sed,nq,mh})
  local extra
  if ! modprobe --all --dry-run "${needed[@]}"; then
    for extra in $(extra_modules); do
      if apt-cache "${apt_options[@]}" show "$extra" >/dev/null; then
        apt_install "$extra" || say "$extra cannot be installed"
      else
        say "there is no package $extra, which an archive has for some recent kernels only"
      fi
    done
  fi
  for module in "${needed[@]}"; do
    if modprobe "$module"; then loaded+=("$module"); else missing+=("$module"); fi
  done
  for module in "${wanted[@]}"; do
    if modprobe "$module"; then
      loaded+=("$module")
    else
      say "this kernel has no $module, so the proxy scheduler ${module#ip_vs_} cannot be chosen"
    fi
  done
  printf '%s\n' "${loaded[@]}" | write /etc/modules-load.d/zoned.conf
  ((${#missing[@]} == 0)) && return
  say "kernel $(uname -r) has no module ${missing[*]}: take an image whose kernel has it" \
    "(zoned:imageVersion)"
  return 1
}

set_kernel() {
  write /etc/sysctl.d/90-zoned.conf <<'END'
net.ipv4.ip_forward = 1
net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
fs.inotify.max_user_instances = 8192
fs.inotify.max_user_watches = 524288
END
  sysctl --load "$root/etc/sysctl.d/90-zoned.conf"
  # When it restarts, as after an upgrade, networkd would take away the routes that the pod network has made.
  write /etc/systemd/networkd.conf.d/zoned.conf <<'END'
[Network]
ManageForeignRoutes=no
ManageForeignRoutingPolicyRules=no
END
}

swap_off() {
  swapoff --all
  sed -i -E 's/^([^#].*[[:space:]]swap[[:space:]].*)$/# \1/' "$root/etc/fstab"
  systemctl mask swap.target
}

tools=(ca-certificates conntrack curl ethtool ipset iptables ipvsadm jq nftables socat)

install_tools() {
  # An upgrade in the background must not restart what pods run on.
  # shellcheck disable=SC2016 # perl's own
  write /etc/needrestart/conf.d/zoned.conf <<<'$nrconf{restart} = "l";'
  apt_install "${tools[@]}"
}

# By udev rules of this package volumes are found where Azure attaches disks by NVMe (azuredisk-csi-driver #2777).
install_disk_rules() {
  if apt-cache "${apt_options[@]}" show azure-vm-utils >/dev/null 2>&1; then
    apt_install azure-vm-utils
  else
    say "there is no package azure-vm-utils, by which volumes are found on NVMe: see whether" \
      "/dev/disk/azure/data/by-lun is there once a volume is attached"
  fi
}

# Pods must not speak for their machine: the metadata service gives out its identity's tokens, and
# the address that Azure's agent talks to gives out its settings. DNS lives at that address too and
# stays. A packet of a pod is forwarded, or, by IPVS, sent on from here with an address not our own.
close_metadata() {
  write /etc/zoned/firewall.nft <<'END'
table inet zoned
delete table inet zoned
table inet zoned {
  chain closed {
    ip daddr 169.254.169.254 reject
    ip daddr 168.63.129.16 tcp dport { 80, 32526 } reject
  }
  chain forward {
    type filter hook forward priority -10; policy accept;
    jump closed
  }
  chain output {
    type filter hook output priority -10; policy accept;
    fib saddr type != local jump closed
  }
}
END
  write /etc/systemd/system/zoned-firewall.service <<'END'
[Unit]
Description=Keep pods away from the metadata service
Before=containerd.service docker.service kubelet.service
After=nftables.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f /etc/zoned/firewall.nft

[Install]
WantedBy=multi-user.target
END
  systemctl enable zoned-firewall.service
  bring_up restart zoned-firewall.service
}

# Written before the package is there, since the package starts the daemon, and the daemon would set
# the FORWARD chain to drop. It needs no bridge: its default range may be one of the network's.
write_docker_settings() {
  local mirrors=() insecure=() origin settings=$root/etc/docker/daemon.json before
  if [[ -n $MIRROR ]]; then
    origin=$(mirror_origin)
    mirrors=("$origin")
    [[ $origin == http://* ]] && insecure=("${origin#http://}")
  fi
  before=$(cat "$settings" 2>/dev/null || true)
  python3 -c '
import json, sys
mirrors, insecure = (value.split() for value in sys.argv[1:])
print(json.dumps({
    "iptables": False, "ip6tables": False, "ip-forward": False, "bridge": "none",
    "exec-opts": ["native.cgroupdriver=systemd"],
    "log-driver": "json-file", "log-opts": {"max-size": "10m", "max-file": "5"},
    "live-restore": True, "registry-mirrors": mirrors, "insecure-registries": insecure,
}, indent=2))' "${mirrors[*]}" "${insecure[*]}" | write /etc/docker/daemon.json
  # An image's runs already, with the mirror that the image was made with.
  [[ -z $before || $(cat "$settings") == "$before" ]] || bring_up restart docker.service
}

# Containers inherit it, and systemd's own is 1,024 since containerd 2 asks for no other
# (containerd/containerd #8924). Written before the package is there, since the package starts the daemon.
raise_file_limits() {
  local unit
  for unit in containerd docker; do
    write "/etc/systemd/system/$unit.service.d/zoned-limits.conf" <<END
[Service]
LimitNOFILE=1048576
END
  done
}

# The distribution's own packages: one source less to trust and to mirror. They are held, since an upgrade of
# them restarts what pods run on; a machine that is made anew has the newest.
install_runtime() {
  local version packages=(containerd)
  raise_file_limits
  if [[ $CONTAINER_RUNTIME != containerd ]]; then
    write_docker_settings
    packages+=(docker.io)
    # Debian has the command line in a package of its own.
    apt-cache "${apt_options[@]}" show docker-cli >/dev/null 2>&1 && packages+=(docker-cli)
  fi
  apt_install "${packages[@]}"
  read -r _ _ version _ <<<"$(containerd --version)"
  at_least containerd "$version" "$CONTAINERD_AT_LEAST"
  hold containerd runc
  [[ $CONTAINER_RUNTIME == containerd ]] && return
  read -r _ _ version _ <<<"$(dockerd --version)"
  at_least Docker "$version" "$DOCKER_AT_LEAST"
  hold dockerd
  systemctl enable docker.service
}

# The two halves of an upgrade: kubeadm is the first to be of another version, the kubelet the last.
install_kubeadm() {
  apt_install kubeadm="$KUBERNETES_VERSION-*"
  apt-mark hold kubeadm
}

install_kubelet() {
  apt_install {kubelet,kubectl}="$KUBERNETES_VERSION-*"
  apt-mark hold kubelet kubectl
}

# crictl is for people: no package depends on it since 1.32.
install_kubernetes() {
  local tools=()
  # A kubelet does not start with what one with another policy or on another size has noted there, and without it gives
  # containers their processors and memory anew.
  write /etc/systemd/system/kubelet.service.d/zoned-state.conf <<'END'
[Service]
ExecStartPre=/usr/bin/rm -f /var/lib/kubelet/cpu_manager_state /var/lib/kubelet/memory_manager_state
END
  apt-cache "${apt_options[@]}" show cri-tools >/dev/null 2>&1 && tools=(cri-tools)
  apt_install {kubelet,kubeadm,kubectl}="$KUBERNETES_VERSION-*" "${tools[@]}"
  apt-mark hold kubelet kubeadm kubectl
  # A worker's kubelet looks for it every second, and complains as often when it is not there.
  mkdir -p "$root/etc/kubernetes/manifests"
  systemctl enable kubelet.service
  write /etc/crictl.yaml <<<"runtime-endpoint: $(runtime_socket)"
}

# What kubeadm lists and pulls images for. Without a tag it chooses etcd's.
images_config() {
  write /etc/zoned/kubeadm-images.yaml <<END
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration: {criSocket: "$(runtime_socket)"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v$KUBERNETES_VERSION
etcd: {local: {imageTag: "$ETCD_IMAGE_TAG"}}
END
  echo "$root/etc/zoned/kubeadm-images.yaml"
}

kubernetes_images() { kubeadm config images list --config "$(images_config)"; }

pause_image() { kubernetes_images | grep '/pause:'; }

# A whole file, since what packages ship may switch the kubelet's side of containerd off.
configure_containerd() {
  local default pause runtime images sandbox version=3 plugins="bin_dir = '/opt/cni/bin'"
  default=$(containerd config default)
  pause=$(pause_image)
  # 1.7 and before read version 2; what reads version 4 reads 3 as well.
  grep --quiet --extended-regexp '^version *= *2$' <<<"$default" && version=2
  # The newer name of it, and both together are an error.
  [[ $default == *bin_dirs* ]] && plugins="bin_dirs = ['/opt/cni/bin']"
  if ((version == 2)); then
    runtime=io.containerd.grpc.v1.cri
    images=$runtime
    sandbox="[plugins.'$images']
  sandbox_image = '$pause'"
  else
    runtime=io.containerd.cri.v1.runtime
    images=io.containerd.cri.v1.images
    sandbox="[plugins.'$images'.pinned_images]
  sandbox = '$pause'"
  fi
  write /etc/containerd/config.toml <<END
version = $version
disabled_plugins = []

$sandbox

[plugins.'$images'.registry]
  config_path = '/etc/containerd/certs.d'

[plugins.'$runtime'.cni]
  $plugins
  conf_dir = '/etc/cni/net.d'

[plugins.'$runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'

[plugins.'$runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
END
  if [[ -n $MIRROR ]]; then
    write /etc/containerd/certs.d/_default/hosts.toml <<END
[host."$(mirror_origin)"]
  capabilities = ["pull", "resolve"]
END
  else
    rm -f "$root/etc/containerd/certs.d/_default/hosts.toml"
  fi
  systemctl enable containerd.service
  bring_up restart containerd.service
  # Not before, where its package has not started it: it would start containerd without these settings.
  [[ $CONTAINER_RUNTIME == containerd ]] || bring_up start docker.service
}

# fetch_archive ADDRESS NAME FOLDER: upstream publishes no checksum beside it, so that it is as safe as its https
# address; a mirror, which has it below that name, must have one.
fetch_archive() {
  local archive=${1##*/} url=$1 expected
  if [[ -n $MIRROR ]]; then
    url=$MIRROR/$2/$archive
    download "$url.sha256" "$3/$archive.sha256"
  fi
  download "$url" "$3/$archive"
  if [[ -n $MIRROR ]]; then
    read -r expected _ <"$3/$archive.sha256"
    sha256sum --check <<<"$expected  $3/$archive"
  fi
}

install_cri_dockerd() {
  local archive folder
  archive=cri-dockerd-$CRI_DOCKERD_VERSION.$(dpkg --print-architecture).tgz
  folder=$(mktemp -d)
  fetch_archive "https://github.com/Mirantis/cri-dockerd/releases/download/v$CRI_DOCKERD_VERSION/$archive" cri-dockerd "$folder"
  tar --extract --gzip --file "$folder/$archive" --directory "$folder" cri-dockerd/cri-dockerd
  mkdir -p "$root/usr/local/bin"
  install --mode 0755 "$folder/cri-dockerd/cri-dockerd" "$root/usr/local/bin/cri-dockerd"
  rm -r "$folder"
  write /etc/systemd/system/cri-dockerd.service <<END
[Unit]
Description=Docker for the kubelet
Requires=docker.service
After=docker.service network-online.target
Wants=network-online.target
Before=kubelet.service

[Service]
Type=notify
ExecStart=/usr/local/bin/cri-dockerd \\
  --container-runtime-endpoint unix:///run/cri-dockerd.sock --network-plugin cni \\
  --cni-bin-dir /opt/cni/bin --cni-conf-dir /etc/cni/net.d \\
  --pod-infra-container-image $(pause_image)
Restart=always
RestartSec=2
Delegate=yes
KillMode=process
LimitNOFILE=infinity
TasksMax=infinity

[Install]
WantedBy=multi-user.target
END
  systemctl enable cri-dockerd.service
  bring_up restart cri-dockerd.service
}

# By which the kubelet logs in to Azure's registries. A kubelet has no proxy, since what it asks for is the API.
install_credential_provider() {
  local archive folder name=azure-acr-credential-provider program
  program=$root/opt/zoned/$name-$CREDENTIAL_PROVIDER_VERSION
  if [[ ! -x $program ]]; then
    archive=$name-linux-$(dpkg --print-architecture)-$CREDENTIAL_PROVIDER_VERSION.tar.gz
    folder=$(mktemp -d)
    fetch_archive "https://packages.aks.azure.com/cloud-provider-azure/$CREDENTIAL_PROVIDER_VERSION/binaries/$archive" \
      credential-provider "$folder"
    tar --extract --gzip --file "$folder/$archive" --directory "$folder" "$name"
    install -D --mode 0755 "$folder/$name" "$program.new"
    mv "$program.new" "$program"
    rm -r "$folder"
  fi
  # A kubelet asks it at any time: the one before goes last.
  write /opt/zoned/credential-providers/acr-credential-provider 0755 <<END
#!/bin/sh
set -a
. $root/etc/zoned/proxy.env
exec $program "\$@"
END
  find "$root/opt/zoned" -name "$name-*" ! -path "$program" -delete
}

runtime_socket() {
  if [[ $CONTAINER_RUNTIME == cri-dockerd ]]; then
    echo unix:///run/cri-dockerd.sock
  else
    echo unix:///run/containerd/containerd.sock
  fi
}

pull_images() {
  local image images
  if [[ $CONTAINER_RUNTIME != cri-dockerd || -z $MIRROR ]]; then
    kubeadm config images pull --config "$(images_config)"
    return
  fi
  images=$(kubernetes_images)
  for image in $images; do pull_from_mirror "$image"; done
}

# dockerd redirects Docker Hub only.
pull_from_mirror() {
  local host here
  host=$(mirror_origin)
  here=${host#*://}/${1#*/}
  docker pull "$here"
  docker tag "$here" "$1"
  docker image rm "$here"
}

# Of add-ons that run on every machine. Only an image has to have them: elsewhere the kubelet pulls them, while other
# machines join.
add_on_images() { cat "$root/etc/zoned/add-on-images" || true; } 2>/dev/null

pull_add_on_images() {
  local image
  for image in $(add_on_images); do
    say "pulling $image"
    if [[ $CONTAINER_RUNTIME != cri-dockerd ]]; then
      ctr --namespace k8s.io images pull --hosts-dir "$root/etc/containerd/certs.d" "$image" >/dev/null
    elif [[ -n $MIRROR ]]; then
      pull_from_mirror "$image"
    else
      docker pull "$image"
    fi
  done
}

# An image that was made for containerd has none.
has_docker() { systemctl cat docker.service; } &>/dev/null

# What this machine has of what the steps install: lines of kind, name, and version or digest.
image_contents() {
  local program version
  echo "setting container-runtime $CONTAINER_RUNTIME"
  echo "setting mirror $MIRROR"
  # It fails where one of them is not installed, which another runtime does without.
  # shellcheck disable=SC2016 # dpkg's own
  { dpkg-query --show --showformat '${db:Status-Abbrev} package ${Package} ${Version}\n' \
    "${tools[@]}" azure-vm-utils containerd runc docker.io kubelet kubeadm kubectl || true; } |
    sed --quiet 's/^.i *package/package/p'
  for program in "$root/opt/zoned/azure-acr-credential-provider-"*; do
    [[ ! -x $program ]] || echo "program azure-acr-credential-provider ${program##*-provider-}"
  done
  if [[ $CONTAINER_RUNTIME == cri-dockerd ]]; then
    read -r _ version _ <<<"$("$root/usr/local/bin/cri-dockerd" --version)"
    echo "program cri-dockerd $version"
    if has_docker; then docker image ls --no-trunc --format 'image {{.Repository}}:{{.Tag}} {{.ID}}'; fi
  else
    # Each image has its name, and its digests as further ones.
    ctr --namespace k8s.io images list | awk '$1 ~ /:/ && $1 !~ /^sha256:|@/ { print "image", $1, $3 }'
  fi
}

# The same of what they would install; a star stands for any version, or the end of one.
wanted_contents() {
  local package
  for package in "${tools[@]}" containerd runc; do echo "package $package *"; done
  [[ $CONTAINER_RUNTIME == containerd ]] || echo "package docker.io *"
  for package in kubelet kubeadm kubectl; do echo "package $package $KUBERNETES_VERSION-*"; done
  [[ $CONTAINER_RUNTIME != cri-dockerd ]] || echo "program cri-dockerd $CRI_DOCKERD_VERSION"
  [[ -z $CREDENTIAL_PROVIDER_VERSION ]] ||
    echo "program azure-acr-credential-provider $CREDENTIAL_PROVIDER_VERSION"
  # A kubeadm of another minor lists none.
  { kubernetes_images || echo "of this version"; } | sed 's/.*/image & */'
}

# Names what the image does not bring, or not as it was made with.
compare_image() {
  local found line kind name wanted end version
  bring_up start containerd.service
  if [[ $CONTAINER_RUNTIME == cri-dockerd ]] && has_docker; then bring_up start docker.service; fi
  found=$'\n'$(image_contents)$'\n'
  {
    while IFS= read -r line; do
      [[ $found != *$'\n'"$line"$'\n'* ]] || continue
      if [[ $line == setting* ]]; then
        echo "these settings, but ${line#setting }"
      else
        echo "$line any more"
      fi
    done <"$image"
    while read -r kind name wanted; do
      end=$'\n'
      [[ $wanted != *\* ]] || end=
      [[ $found == *$'\n'"$kind $name ${wanted%\*}$end"* ]] || echo "$kind $name $wanted"
    done < <(wanted_contents)
    read -r _ _ version _ <<<"$(containerd --version)"
    at_least containerd "$version" "$CONTAINERD_AT_LEAST" >&2 || echo "package containerd $CONTAINERD_AT_LEAST"
    if [[ $CONTAINER_RUNTIME != containerd ]]; then
      read -r _ _ version _ <<<"$(dockerd --version)"
      at_least Docker "$version" "$DOCKER_AT_LEAST" >&2 || echo "package docker.io $DOCKER_AT_LEAST"
    fi
  } >"$state/lacking"
  for name in $(add_on_images); do
    # Docker leaves the name of its own registry out.
    [[ $CONTAINER_RUNTIME != cri-dockerd ]] || name=${name#docker.io/}
    [[ $found == *$'\n'"image $name "* ]] || say "the image does not have image $name, which the kubelet pulls"
  done
}

# A step that fetches, which a machine of an image that brings everything does without.
fetching_step() { [[ -e $image && ! -s $state/lacking ]] || step "$@"; }

if (($# > 0)); then
  # The lock is for the timeout of a step alone: daemons would inherit it, and keep it.
  exec 9>&-
  trap 'report_failure $? "$BASH_COMMAND" $LINENO' ERR
  "$1"
  exit
fi

mkdir -p "$state" "$(dirname "$log")" "$root/run"
touch "$log"
chmod 0600 "$log"
exec 9>"$root/run/zoned-first-boot.lock"
flock 9
[[ -e $state/first-boot.done ]] && exit 0
rm -f "$state/first-boot.failed"
# Room to say what went wrong where a step fills the disk.
head --bytes=64K /dev/zero >"$state/spare" || true

pause_upgrades
if has_other_proxy; then step "proxy" 120 3 set_proxy; fi
if [[ -e $image ]]; then
  step "image" 120 2 compare_image
  while IFS= read -r line; do note "the image does not have $line"; done <"$state/lacking"
fi
# Its pauses add up to the twenty minutes that docs/landing-zone.md gives those who add routes to a new network.
fetching_step "egress" 60 42 check_egress
fetching_step "package source" 900 8 add_package_source
step "kernel modules" 900 1 load_modules
step "kernel settings" 60 0 set_kernel
step "swap off" 120 0 swap_off
fetching_step "tools" 1200 5 install_tools
if compgen -G "$root/dev/nvme*n1" >/dev/null; then fetching_step "rules for disks" 600 5 install_disk_rules; fi
step "firewall for pods" 60 1 close_metadata
fetching_step "container runtime" 1200 5 install_runtime
fetching_step "kubernetes packages" 1200 5 install_kubernetes
step "containerd settings" 120 2 configure_containerd
[[ $CONTAINER_RUNTIME != cri-dockerd ]] || fetching_step "cri-dockerd" 300 5 install_cri_dockerd
[[ -z $CREDENTIAL_PROVIDER_VERSION ]] || fetching_step "credential provider" 300 5 install_credential_provider
fetching_step "images" 1200 5 pull_images
remove_package_source

date --utc +%FT%TZ >"$state/first-boot.done"
note "done"
