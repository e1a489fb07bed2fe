# shellcheck shell=bash
# Whether this machine is healthy, and whether the other control planes are.

control_plane_is_well() {
  ask_api /readyz --fail --max-time 10 --resolve "$api_name:$api_port:127.0.0.1" &&
    curl --silent --show-error --fail --max-time 10 --noproxy '*' http://127.0.0.1:2381/health
}

kubelet_pods() {
  curl --silent --show-error --fail --max-time 10 --noproxy '*' --cacert "$pki/ca.crt" \
    --cert "$pki/apiserver-kubelet-client.crt" --key "$pki/apiserver-kubelet-client.key" \
    --resolve "$machine:10250:127.0.0.1" "https://$machine:10250/pods"
}

# As the kubelet that runs now has them. One of another minor version gives static pods another UID and
# starts them anew, after seconds in which those of its predecessor answer, and look Ready in the API.
static_pods_are_ready() {
  local pods amiss
  pods=$(kubelet_pods) || return
  amiss=$(jq --raw-output --arg machine "$machine" '
    [.items[] | select(any(.status.conditions[]?; .type == "Ready" and .status == "True")) | .metadata.name] as $ready
    | ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] | map("\(.)-\($machine)")
    | . - $ready | join(", ")' <<<"$pods") || return
  [[ -z $amiss ]] && return
  echo "not Ready for the kubelet: $amiss"
  return 1
}

await_static_pods() { watch static_pods_are_ready; }

# An API server looks for other keys once a minute, and shows the digest of the file that it has. The
# next machine relies on these keys.
keys_are_loaded() {
  local file=/etc/zoned/encryption/secrets.yaml digest metrics
  grep --quiet -- "--encryption-provider-config=$file" "$root/etc/kubernetes/manifests/kube-apiserver.yaml" || return 0
  digest=$(sha256sum <"$root$file") || return
  metrics=$(kubectl --kubeconfig "$admin" --request-timeout 20s get --raw /metrics) || return
  grep --quiet "^apiserver_encryption_config_controller_last_config_info{.*${digest%% *}" <<<"$metrics" && return
  echo "the API server has not loaded $file yet"
  return 1
}

await_control_plane() {
  watch control_plane_is_well
  watch keys_are_loaded
  await_balancer
}

has_pod_network() { compgen -G "$root/etc/cni/net.d/*.conf*" >/dev/null; }

node_is_ready() {
  local ready
  local condition='.status.conditions[]? | select(.type == "Ready") | "\(.status) \(.reason) \(.message)"'
  has_pod_network || {
    echo "node $machine: no pod network yet, /etc/cni/net.d has no configuration"
    return 1
  }
  ready=$(ask_as_kubelet "/api/v1/nodes/$machine" | jq --raw-output "$condition") || return
  [[ $ready == True* ]] && return
  echo "node $machine: Ready is $ready"
  return 1
}

# The lease says that this kubelet is alive now: after a reboot the condition is what it was before.
node_is_well() {
  local renewed lease=/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/$machine
  [[ -z $awaits_ready ]] || node_is_ready || return
  renewed=$(ask_as_kubelet "$lease" | jq --raw-output .spec.renewTime) || return
  (($(date --date "$renewed" +%s) >= begun)) && return
  echo "the kubelet last reported at $renewed"
  return 1
}

await_node() {
  local begun=$EPOCHSECONDS
  watch node_is_well
  name_size || say "the label of this Node's size is as before"
}

# Azure's node manager names the size of a Node once, when it initializes it, and not after a resize (cloud-provider-azure
# #331). A kubelet may name it too (NodeRestriction).
name_size() {
  local label=node.kubernetes.io/instance-type named size
  named=$(ask_as_kubelet "$(node_path)" | jq --raw-output --arg of "$label" '.metadata.labels[$of] // ""') || return
  [[ -n $named ]] || return 0
  size=$(ask_metadata 'instance/compute/vmSize?api-version=2021-02-01&format=text') || return
  [[ ${named,,} == "${size,,}" ]] || patch_node "{\"metadata\": {\"labels\": {\"$label\": \"$size\"}}}"
}

boot_id() { cat "$root/proc/sys/kernel/random/boot_id"; }

# This machine has joined or was rebooted, and no run has seen the cluster whole since.
is_touched() {
  [[ -e $state/touched ]] || { [[ -e $state/boot ]] && [[ $(boot_id) != $(<"$state/boot") ]]; }
}

settle() {
  echo "$room" >"$state/room"
  echo "$configuration" >"$state/configuration"
  boot_id >"$state/boot.new"
  mv "$state/boot.new" "$state/boot"
  rm -f "$state/touched"
}

# Members as etcd lists them: those that have begun, each with its name and the address of its clients.
etcd_peers() {
  jq --raw-output --arg own "$machine" '.members[]
    | select(.name and .name != "" and .name != $own and (.isLearner | not))
    | "\(.name) \(.clientURLs[0])"' <<<"$1"
}

unfinished_members() {
  jq --raw-output '.members[]
    | if (.name // "") == "" then "etcd member at \(.peerURLs[0]) has not begun"
      elif .isLearner then "etcd member \(.name) is still a learner" else empty end' <<<"$1"
}

etcd_alarms() {
  jq --raw-output --argjson list "$1" '.alarms[]? | .memberID as $id
    | "etcd member \(first($list.members[] | select(.ID == $id) | .name) // $id): alarm \(.alarm)"' <<<"$2"
}

# A Node that is not Ready, and a static pod that is not, of every control plane but this one.
unready_peers() {
  jq --raw-output --arg own "$machine" --arg awaits "$awaits_ready" '
    def ready: first(.status.conditions[]? | select(.type == "Ready")) // {status: "Unknown"};
    .items as $items | $items[]
    | select(.kind == "Node" and .metadata.name != $own)
    | select(.metadata.labels | has("node-role.kubernetes.io/control-plane"))
    | .metadata.name as $node
    | (select($awaits != "") | ready | select(.status != "True")
        | "node \($node): Ready is \(.status) \(.reason) \(.message)"),
      (("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
        | "\(.)-\($node)" as $pod
        | (first($items[] | select(.kind == "Pod" and .metadata.name == $pod)) // {})
        | select((ready | .status) != "True")
        | "static pod \($pod) is not Ready")' <<<"$1"
}

# A line for each thing amiss with the other control planes.
peers_amiss() {
  local own=https://127.0.0.1:2379 members alarms objects name url health voters
  local -A silent=()
  members=$(ask_etcd "$own/v3/cluster/member/list" --fail --data '{}' 2>&1) ||
    { echo "etcd of $machine lists no members: $members" && return; }
  alarms=$(ask_etcd "$own/v3/maintenance/alarm" --fail --data '{"action": "GET"}' 2>&1) ||
    { echo "etcd of $machine lists no alarms: $alarms" && return; }
  unfinished_members "$members"
  etcd_alarms "$members" "$alarms"
  while read -r name url; do
    health=$(ask_etcd "$url/health" 2>&1) || true
    [[ $health == *'"health":"true"'* ]] || silent[$name]=$health
  done < <(etcd_peers "$members")
  objects=$(kubectl --kubeconfig "$admin" --request-timeout 30s \
    get nodes,pods --namespace kube-system --output json 2>&1) ||
    { echo "the API: $objects" && return; }
  voters=$(jq '.members | length' <<<"$members")
  for name in "${!silent[@]}"; do
    # One whose machine is gone may be what is made next. It counts only where etcd could spare no other.
    if ((voters - ${#silent[@]} - 1 <= voters / 2)) || has_node "$name" "$objects"; then
      echo "etcd member $name is not healthy: ${silent[$name]}"
    fi
  done
  unready_peers "$objects"
}

has_node() {
  jq --exit-status --arg name "$1" \
    'any(.items[]; .kind == "Node" and .metadata.name == $name)' <<<"$2" >/dev/null
}

peers_are_well() {
  local amiss
  amiss=$(peers_amiss 2>&1)
  [[ -z $amiss ]] && return
  echo "another control plane is not well, so no other machine was touched; make it well, or delete its Node if its" \
    "machine is gone for good (kubectl delete node), and run \`pulumi up\` again, which goes on from here: ${amiss//$'\n'/; }"
  return 1
}

await_peers() { watch peers_are_well; }
