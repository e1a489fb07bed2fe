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
  runc: "",
  dockerd: 'echo "Docker version 29.1.3+dfsg1, build abc"',
  docker: "",
  kubelet: "",
  kubectl: "",
  kubeadm: `case $* in "config images list"*) printf '%s\\n' ${images.join(" ")} ;; esac`,
});
