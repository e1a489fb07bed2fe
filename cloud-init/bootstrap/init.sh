# shellcheck shell=bash
# The initial control plane: whether it initializes, from what, and with which settings.

# kubeadm has begun something here, and no step saw it end well.
is_half_done() {
  [[ -e $state/joined ]] && return 1
  compgen -G "$root/etc/kubernetes/*.conf" || compgen -G "$root/etc/kubernetes/manifests/*.yaml" ||
    compgen -G "$root/var/lib/etcd/member" || [[ -e $state/initialization ]]
} >/dev/null

# Takes away kubeadm's files, keys among them, and gives back those that came with the payload.
reset_machine() {
  kubeadm reset --config "$root/etc/zoned/kubeadm-reset.yaml"
  rm -f "$state/initialization"
  payload files
}

decide() {
  local own tries=3
  name_is_elsewhere
  if is_half_done && [[ -e $state/initialization ]]; then
    say "an earlier run began to initialize the cluster here, and did not end"
    reset_machine
  fi
  own=$(own_id)
  say "this machine is $own, the initial control plane is $initial_control_plane"
  while :; do
    if api_answers; then
      echo join >"$run/decision"
      return
    fi
    if [[ ${own,,} == "${initial_control_plane,,}" ]]; then
      ((--tries > 0)) || break
      sleep 1
    else
      reason "no API answers at https://$api_name:$api_port, and this machine (vmId $own) is not" \
        "the one that may initialize the cluster (vmId $initial_control_plane). Bring a control plane machine back and" \
        "run \`pulumi up\` again; if all are lost, it says how a new, empty cluster takes their place"
      sleep 15
    fi
  done
  is_half_done && {
    reason "no API answers at https://$api_name:$api_port, and this machine has begun to join one:" \
      "bring the other control plane machines back and run \`pulumi up\` again"
    return 1
  }
  echo initialize >"$run/decision"
}

# A control plane that joins or is upgraded gets the configuration that the cluster has, where kubeadm reads
# it. The first one that has another gives it to the cluster; an annotation says to the others that this was done.
#
# cluster_settings KUBECONFIG VERB [KUBECTL'S OPTION...]
cluster_settings() {
  kubectl --kubeconfig "$1" --request-timeout 30s --namespace kube-system "$2" configmap kubeadm-config "${@:3}"
}

has_settings() {
  [[ $(cluster_settings "$1" get --output 'jsonpath={.metadata.annotations.zoned/configuration}') == "$cluster" ]]
}

# give_settings KUBECONFIG. The annotation is removed first, and set again by note_settings when all is done that
# the configuration says. Else an update that fails in between, and is taken back, would find the annotation of
# before, and leave kubeadm-config as the failed one has written it.
give_settings() {
  cluster_settings "$1" annotate zoned/configuration- >/dev/null
  kubeadm init phase upload-config all --config "$init_config" --kubeconfig "$1"
}

note_settings() { cluster_settings "$1" annotate --overwrite "zoned/configuration=$cluster"; }

# become initialized|joined: with what it was configured, else it would be upgraded at once.
become() {
  echo "$configuration" >"$state/configuration"
  echo "$1" >"$state/joined"
}

initialize() {
  if is_half_done; then reset_machine; fi
  name_is_here
  touch "$state/initialization"
  if [[ -n $restored_from ]]; then
    rm -rf "$root/var/lib/etcd"
    # By itself, since it wants that folder to be empty, and takes no check to ignore beside `all`, which the
    # configuration may have.
    kubeadm init phase preflight --config "$init_config"
    restore_etcd
    # kube-proxy is patched by the program (upgradeConfiguration in kubeadm.ts), and in the snapshot as it was.
    kubeadm init --config "$init_config" --skip-token-print --skip-phases preflight,addon/kube-proxy
    # Before the kubelet starts anew: it reads them then, and never again. A cluster that begins empty has one CA.
    ! has_task cas || {
      trust_authorities "$root"/etc/kubernetes/*.conf
      publish_authorities
      publish_client_authorities
    }
    forget_old_control_planes
    # The pod network is in the snapshot.
    become joined
  else
    kubeadm init --config "$init_config" --skip-token-print
    become initialized
  fi
  # Else the first one that joins does.
  note_settings "$admin" || say "the configuration of the cluster is not noted yet"
  rm "$state/initialization"
}

# etcd_snapshot VERB...: what saves and fetches snapshots, and says in its last line why it cannot.
etcd_snapshot() {
  "$root/opt/zoned/etcd-snapshot.sh" "$@" 2>"$run/snapshot-said" || {
    cat "$run/snapshot-said"
    reason "$(tail --lines=1 "$run/snapshot-said")"
    return 1
  }
  cat "$run/snapshot-said"
}

# In the folder of the state: /run is in memory, and nothing there may be executed.
fetch_snapshot() {
  etcd_snapshot fetch "$restored_from" "$state/snapshot.db"
  etcd_snapshot etcdutl "$state/etcdutl"
  "$state/etcdutl" --write-out json snapshot status "$state/snapshot.db" | tee "$run/snapshot-status" || {
    reason "etcdutl cannot read snapshot $restored_from: name an older one (pulumi config set restoreFrom)"
    return 1
  }
}

# Watches have seen revisions that the snapshot does not know, those of an earlier restoration among them, which no
# snapshot may have. Past all of them, and with what was before compacted away, every client lists anew (etcd's guide
# "Disaster recovery"). No etcd writes a million times a second, so that microseconds since 1970 are ahead of each.
restore_etcd() {
  local own=https://$address:2380 revision
  revision=$(jq .revision "$run/snapshot-status")
  "$state/etcdutl" snapshot restore "$state/snapshot.db" --data-dir "$root/var/lib/etcd" --name "$machine" \
    --initial-cluster "$machine=$own" --initial-advertise-peer-urls "$own" \
    --initial-cluster-token "zoned-$(date --utc +%Y%m%dT%H%M%SZ)" --mark-compacted \
    --bump-revision "$((EPOCHSECONDS * 1000000 - revision))"
}

# Nodes of machines that are gone, this one's predecessor among them, and all pods on them: with the volumes,
# taints and pod network of then they would be taken for what is here. This machine's kubelet registers anew when it begins.
forget_old_control_planes() {
  local kubectl=(kubectl --kubeconfig "$admin" --request-timeout 30s) names name
  systemctl stop kubelet
  names=$("${kubectl[@]}" get nodes --selector node-role.kubernetes.io/control-plane --output 'jsonpath={.items[*].metadata.name}')
  for name in $names; do
    "${kubectl[@]}" delete node "$name" --ignore-not-found --wait=false
    "${kubectl[@]}" delete pods --all-namespaces --field-selector "spec.nodeName=$name" --grace-period 0 --force --wait=false
  done
  systemctl start kubelet
  kubeadm init phase mark-control-plane --config "$init_config"
}
