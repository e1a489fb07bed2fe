# shellcheck shell=bash
# What a worker's kubelet keeps back for the machine's system. A control plane's keeps back nothing here: what
# its system is there for, the API server and etcd, are pods themselves.

# kubeadm takes patches in the order of their names, so that the operator's come after it.
reserved="$patches/kubeletconfiguration!reserved.json"

# AKS's formula, by what this very machine has: cores, memory, and how many pods it takes
# (learn.microsoft.com/azure/aks/node-resource-reservations).
reservation() {
  local cores mebibytes cpu memory
  cores=$(nproc --all)
  mebibytes=$(free --mebi | awk '$1 == "Mem:" { print $2 }')
  if ((cores == 1)); then cpu=60; else cpu=$((60 + 20 * (cores < 4 ? cores : 4))); fi
  if ((cores > 4)); then cpu=$((cpu + 10 * (cores - 4))); fi
  memory=$((20 * max_pods + 50))
  if ((memory > mebibytes / 4)); then memory=$((mebibytes / 4)); fi
  echo "{\"kubeReserved\": {\"cpu\": \"${cpu}m\", \"memory\": \"${memory}Mi\"}}"
}

# As after a change of the machine's size.
has_other_reservation() { [[ $role == worker && -e $reserved && $(<"$reserved") != "$(reservation)" ]]; }

reserve_resources() {
  mkdir -p "$patches"
  reservation >"$reserved"
  say "the kubelet gets $(<"$reserved")"
}
