# shellcheck shell=bash
# Cordon, drain and uncordon of this Node, by the kubelet's own certificate.

# A kubelet may evict the pods that run on its own node, and cordon that, by its own certificate
# (Node authorization mode and the admission plugin NodeRestriction).
node_path() { echo "/api/v1/nodes/$machine"; }

patch_node() {
  ask_as_kubelet "$(node_path)" --output /dev/null --request PATCH \
    --header 'Content-Type: application/merge-patch+json' --data "$1"
}

# annotate NAME VALUE, the value as JSON
annotate() { patch_node "{\"metadata\": {\"annotations\": {\"$1\": $2}}}"; }

# cordon MARK VALUE
cordon() {
  local node
  node=$(ask_as_kubelet "$(node_path)") || return
  # A cordon that this script did not set stays.
  jq --exit-status '.spec.unschedulable == true' <<<"$node" >/dev/null && return
  patch_node "{\"metadata\": {\"annotations\": {\"$1\": \"$2\"}},
    \"spec\": {\"unschedulable\": true}}"
}

# uncordon MARK
uncordon() {
  local node
  node=$(ask_as_kubelet "$(node_path)") || return
  jq --exit-status --arg by "$1" '.metadata.annotations[$by]' <<<"$node" >/dev/null || return 0
  patch_node "{\"metadata\": {\"annotations\": {\"$1\": null}},
    \"spec\": {\"unschedulable\": null}}"
}

# A Node that an update drains has this mark, which says what of that is the update's own: see components/cluster/drain.ts.
drain_mark=zoned/drained
excluded=node.kubernetes.io/exclude-from-external-load-balancers

is_drained() {
  local node
  node=$(ask_as_kubelet "$(node_path)" 2>>"$log") || return 0
  jq --exit-status --arg mark "$drain_mark" '.metadata.annotations | (. // {}) | has($mark)' <<<"$node" >/dev/null
}

# Of a drain that somebody has ended by hand, more than the cordon may be left.
drained_before() { ask_as_kubelet "$(node_path)" | jq --raw-output --arg mark "$drain_mark" '.metadata.annotations[$mark] // ""'; }

undo_drain() {
  local node patch
  node=$(ask_as_kubelet "$(node_path)")
  patch=$(jq --compact-output --arg mark "$drain_mark" --arg excluded "$excluded" \
    '((.metadata.annotations[$mark] // "") / " ") as $own
    | {metadata: {annotations: {($mark): null}}}
    | if $own | index("excluded") then .metadata.labels[$excluded] = null else . end
    | if $own | index("unschedulable") then .spec.unschedulable = null else . end' <<<"$node")
  patch_node "$patch"
}

# Pods that go elsewhere when this node is drained: not a DaemonSet's, not static, not finished.
drainable_pods() {
  ask_as_kubelet "/api/v1/pods?fieldSelector=spec.nodeName%3D$machine" |
    jq --raw-output '.items[]
      | select(.status.phase != "Succeeded" and .status.phase != "Failed")
      | select(.metadata.annotations["kubernetes.io/config.mirror"] == null)
      | select(any(.metadata.ownerReferences[]?; .kind == "DaemonSet") | not)
      | "\(.metadata.namespace) \(.metadata.name) \(.metadata.deletionTimestamp // "")"'
}

# A volume that is attached to a machine that is down keeps its next pod waiting for minutes.
has_volumes() { ask_as_kubelet "$(node_path)" | jq --exit-status '(.status.volumesAttached // []) != []' >/dev/null; }

# Says whether a pod goes, or why it cannot at the moment, which is a PodDisruptionBudget.
evict() {
  local answer code
  answer=$(ask_api "/api/v1/namespaces/$1/pods/$2/eviction" --max-time 20 --write-out '\n%{http_code}' \
    --cert "$kubelet_certificate" --header 'Content-Type: application/json' \
    --data "{\"apiVersion\": \"policy/v1\", \"kind\": \"Eviction\",
      \"metadata\": {\"namespace\": \"$1\", \"name\": \"$2\"}}")
  code=${answer##*$'\n'}
  if [[ $code == 2?? || $code == 404 ]]; then
    echo "$1/$2 is being evicted"
    return
  fi
  echo "$1/$2: $(jq --raw-output '[.message, (.details.causes[]?.message)] | join(" ")' <<<"${answer%$'\n'*}")"
}

# As components/cluster/drain.ts: nobody here ends a pod where the kubelet is silent, or has not been Ready for five minutes.
ends_pods() {
  local node silent
  node=$(ask_as_kubelet "$(node_path)") || return 0
  silent=$(jq '[.status.conditions[]? | select(.type == "Ready") | select(.status == "Unknown"
    or .status == "False" and now - (.lastTransitionTime | fromdate) >= 300)] | length' <<<"$node") || return 0
  ((silent == 0))
}

# What keeps pods on this node; those that may go are evicted.
held_pods() {
  local pods namespace name deleted
  pods=$(drainable_pods) || return
  while read -r namespace name deleted; do
    [[ -n $namespace ]] || continue
    if [[ -n $deleted ]]; then echo "$namespace/$name has not ended yet"; else evict "$namespace" "$name"; fi
  done <<<"$pods" | paste --serial --delimiters ';'
}

# A kubelet that has less room for pods than it runs ends those that do not fit when it starts, whatever their budgets
# say; to take more of them it reserves more memory, and ends those that find none.
has_other_room() { [[ -e $state/room && $(<"$state/room") != "$room" ]]; }

# Seconds for which another machine may be waited for, or pods of this one: what follows needs half an hour of the
# time that Azure gives the step.
patience() {
  local seconds=$((ZONED_DEADLINE - EPOCHSECONDS - 1800))
  ((seconds > 0)) || seconds=0
  echo $((seconds < drain_minutes * 60 ? seconds : drain_minutes * 60))
}

# `pulumi up` has drained this machine before its step, and waited for its volumes: Azure changes nothing of a VM whose
# extension runs, and a volume that is detached is such a change. What came since goes here, and all where nobody could
# ask the API from there, or --target left the drain out; also where the kubelet is to have another room for pods.
drain() {
  local held until seconds own
  local way="empty it by hand, which may take longer (kubectl drain $machine --ignore-daemonsets --delete-emptydir-data, and kubectl uncordon after the update)"
  seconds=$(patience)
  ((seconds < drain_minutes * 60)) || way="give them longer (zoned:drainMinutes)"
  until=$((SECONDS + seconds))
  until own=$(drained_before) && cordon "$drain_mark" "${own:+$own }unschedulable"; do
    reason "the API does not answer, and this Node cannot be cordoned"
    ((SECONDS < until)) || return 1
    sleep 5
  done
  while ! held=$(held_pods) || [[ -n $held ]]; do
    reason "$held"
    ends_pods || return 0
    if ((SECONDS > until)); then
      undo_drain
      end_turn update || true
      reason "after $((seconds / 60)) minutes pods are still on this machine, which was not touched and takes pods" \
        "again: $held. Let them go, or $way, and run \`pulumi up\` again"
      return 1
    fi
    sleep 5
  done
}
