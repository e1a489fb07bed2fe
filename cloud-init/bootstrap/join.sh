# shellcheck shell=bash
# A join, and how one that did not end well is undone.

find_node() { kubectl_join get node "$machine" --ignore-not-found --output name; }

forget_node() {
  local node
  node=$(find_node)
  [[ -n $node ]] || return 0
  say "removing the node $machine that was here before"
  kubectl_join delete node "$machine" --ignore-not-found --wait=false
}

# A control plane holds the CA, so it issues its own credential, which lasts for this step only.
mint_credential() {
  (
    umask 077
    kubeadm kubeconfig user --config "$init_config" --client-name "zoned:$machine" \
      --validity-period 2h \
      --org kubeadm:cluster-admins,system:bootstrappers:kubeadm:default-node-token >"$discovery.new"
    ! has_task cas || trust_authorities "$discovery.new"
  )
  mv "$discovery.new" "$discovery"
  kubeadm init phase certs etcd-healthcheck-client --config "$init_config" >/dev/null
}

# The API says where the other control planes' etcd is, once: when etcd lacks a majority, because of the
# very member that is to be removed, the API does not answer.
etcd_endpoints() {
  local known=$run/etcd-endpoints
  [[ -s $known ]] || kubectl_join get pods --namespace kube-system --selector component=etcd --output json |
    jq --raw-output '.items[].metadata.annotations
      ["kubeadm.kubernetes.io/etcd.advertise-client-urls"] // empty' >"$known"
  cat "$known"
}

# ask_etcd URL [CURL'S OPTION...], by the certificate that kubeadm makes for such questions
ask_etcd() {
  curl --silent --show-error --connect-timeout 5 --max-time 30 --noproxy '*' \
    --cacert "$pki/etcd/ca.crt" --cert "$pki/etcd/healthcheck-client.crt" \
    --key "$pki/etcd/healthcheck-client.key" "$@"
}

# etcd's own HTTP interface at the other control planes needs neither their kubelets nor an image.
etcd_members() {
  local verb=$1 data=$2 endpoint endpoints
  endpoints=$(etcd_endpoints)
  for endpoint in $endpoints; do
    [[ $endpoint == "https://$address:"* ]] && continue
    ask_etcd "$endpoint/v3/cluster/member/$verb" --fail --data "$data" && return
  done
  say "no etcd member of another machine does '$verb'; asked: ${endpoints:-nobody}"
  return 1
}

# Before the machine is reset: etcd counts a member that is gone, and two of which one is gone
# decide nothing.
forget_member() {
  local id listed tries=12
  while :; do
    if listed=$(etcd_members list '{}'); then
      id=$(jq --raw-output --arg name "$machine" --arg peer "https://$address:2380" \
        'first(.members[] | select(.name == $name or (.peerURLs | index($peer))) | .ID) // empty' \
        <<<"$listed")
      [[ -n $id ]] || return 0
      say "removing etcd member $id, which is $machine as it was before"
      etcd_members remove "{\"ID\": \"$id\"}" >/dev/null && continue
    fi
    ((tries-- > 0)) || return 1
    sleep 5
  done
}

undo_join() {
  say "undoing a join that did not end well"
  name_is_elsewhere
  payload files
  if [[ $role == control-plane ]]; then
    mint_credential
    forget_member
  fi
  reset_machine
  [[ $role == worker ]] || mint_credential
  forget_node
}

# Keeps its output, which names the phase that failed.
run_kubeadm() { kubeadm "$@" 2>&1 | tee "$run/kubeadm-said"; }

# etcd has two seconds for each answer, whatever kubeadm's timeouts say, and some questions are asked
# once only (cmd/kubeadm/app/util/etcd/etcd.go). This phase goes on from where it was when it is run again.
kubeadm_join() {
  local code=0 tries=5
  local before=preflight,control-plane-prepare,check-etcd,kubelet-start,etcd-join
  run_kubeadm join --config "$join_config" || code=$?
  while ((code != 0 && tries-- > 0)) &&
    grep --quiet 'execution phase etcd-join:' "$run/kubeadm-said"; do
    sleep 5
    say "etcd did not answer kubeadm in time; asking again"
    code=0
    {
      run_kubeadm join phase etcd-join --config "$join_config" &&
        run_kubeadm join --config "$join_config" --skip-phases "$before"
    } || code=$?
  done
  return "$code"
}

join() {
  local code=0
  if is_half_done; then undo_join; fi
  if [[ $role == control-plane ]]; then
    mint_credential
    forget_member
    [[ -z $is_api_private ]] || name_is_at_peer
    has_settings "$discovery" || {
      give_settings "$discovery"
      note_settings "$discovery"
    }
  fi
  [[ $role == control-plane ]] || reserve_resources
  forget_node
  kubeadm_join || code=$?
  if ((code != 0)); then
    # In a process of its own, so that its first failure ends it: what etcd still counts is not reset.
    "$BASH" "$0" undo_join || say "the join could not be undone yet; the next try begins with that"
    return "$code"
  fi
  touch "$state/touched"
  if [[ $role == control-plane ]]; then name_is_here; fi
  [[ -z $is_api_private ]] || touch "$renamed"
  become joined
}
