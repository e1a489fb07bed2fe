/** Programs that a first boot finds or installs, which do nothing but say their versions, and which images they need. */
export const firstBootPrograms = (images: readonly string[]): Readonly<Record<string, string>> => ({
  "apt-get": "",
  "apt-cache": "exit 100",
  "apt-mark": "",
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
});
