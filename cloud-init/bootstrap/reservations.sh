# shellcheck shell=bash
# CPU and memory that a worker's kubelet reserves for itself and the container runtime (kubeReserved). A control
# plane's reserves nothing by it: the limit of all pods would be the API server's and etcd's, too.

# kubeadm applies patches in the order of their names, so that the operator's come after this one.
reserved="$patches/kubeletconfiguration!reserved.json"

# AKS's formula, by this machine's own cores and memory, and by how many pods it takes
# (learn.microsoft.com/azure/aks/node-resource-reservations).
reservation() {
  local cores mebibytes cpu memory most
  cores=$(nproc --all)
  mebibytes=$(free --mebi | awk '$1 == "Mem:" { print $2 }')
  if ((cores == 1)); then cpu=60; else cpu=$((60 + 20 * (cores < 4 ? cores : 4))); fi
  if ((cores > 4)); then cpu=$((cpu + 10 * (cores - 4))); fi
  memory=$((20 * max_pods + 50))
  # Of the size's memory, of which each kernel leaves another few MiB: each difference starts the kubelet anew.
  most=$(((mebibytes + 511) / 512 * 512 / 4))
  if ((memory > most)); then memory=$most; fi
  echo "{\"kubeReserved\": {\"cpu\": \"${cpu}m\", \"memory\": \"${memory}Mi\"}}"
}

# As after a change of the machine's size.
has_other_reservation() { [[ $role == worker && -e $reserved && $(<"$reserved") != "$(reservation)" ]]; }

reserve_resources() {
  mkdir -p "$patches"
  reservation >"$reserved"
  say "the kubelet's configuration gets $(<"$reserved")"
}
