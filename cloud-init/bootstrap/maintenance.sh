# shellcheck shell=bash
# Azure's scheduled events on this machine, and whose turn it is to be down.

# Who is down, or is about to be: a machine, who takes it down, and when that is forgotten. Events of Azure,
# kured, renewals of certificates and `pulumi up` all ask here. It is no Lease: NodeRestriction lets a kubelet
# write its own alone.
turns=/api/v1/namespaces/kube-system/configmaps/zoned-maintenance

# Annotation of it: between two steps of an update no machine has its turn.
repairs_wait=zoned/repairs-wait-until

# shellcheck disable=SC2016 # jq's own
# Machines of an update follow each other as Pulumi has it, and exclude all others, this machine's own renewal or
# reboot too. What repairs this machine excludes others alone: it is its restart, or what an update of it repairs.
others='(select($why == "repair") | .metadata.annotations["'$repairs_wait'"] // "" | select(. > $now)
    | "an update has run, and repairs wait until \(.)"),
  ((.data // {}) | to_entries[] | (.value / " ") as [$by, $until]
    | select($until > $now and if $by == "update" then $why != "update"
      else .key != $own and .key != "repair.\($own)" end)
    | "\(.key) is down for \($by), at most until \($until)")'

# ask_turns [CURL'S OPTION...]: the answer, and its status in a last line
ask_turns() { ask_api "$turns" --max-time 20 --write-out '\n%{http_code}' --cert "$kubelet_certificate" "$@"; }

# take_turn WHY [MINUTES]: notes that this machine is down, or says who else is. Without minutes it only looks.
take_turn() {
  local why=$1 minutes=${2:-} answer code said patch now until
  answer=$(ask_turns) || answer=$'\n0'
  code=${answer##*$'\n'}
  answer=${answer%$'\n'*}
  if [[ $code != 200 ]]; then
    # Of an update: a cluster of before has no such object yet, and an API server that is down may be what it repairs.
    [[ $why == update ]] && return
    echo "who is down cannot be asked ($turns: $code)"
    return 1
  fi
  now=$(date --utc +%FT%TZ)
  said=$(jq --raw-output --arg own "$machine" --arg why "$why" --arg now "$now" "$others" <<<"$answer")
  [[ -z $said ]] || { echo "$said" && return 1; }
  [[ -n $minutes ]] || return 0
  until=$(date --utc --date "$minutes minutes" +%FT%TZ)
  patch=$(jq --compact-output --arg own "$machine" --arg value "$why $until" --arg now "$now" \
    '{metadata: {resourceVersion: .metadata.resourceVersion},
      data: ((.data // {}) | map_values(if (. / " ")[1] > $now then . else null end) + {($own): $value})}' <<<"$answer")
  change_turns "$patch"
}

# The version that was read goes with it: of two that take their turn at once, one is told 409.
change_turns() {
  local code
  code=$(ask_turns --output /dev/null --request PATCH --header 'Content-Type: application/merge-patch+json' --data "$1")
  [[ ${code##*$'\n'} == 200 ]] || { echo "$turns: ${code##*$'\n'}" && return 1; }
}

# end_turn update|other: takes back what this machine has noted by itself, and not what another has noted of it. A
# step of an update, also one that needed no turn, has repairs wait for the next one.
end_turn() {
  local answer patch wait tries=3
  wait=$(date --utc --date "15 minutes" +%FT%TZ)
  while :; do
    answer=$(ask_turns) || return 1
    [[ ${answer##*$'\n'} == 200 ]] || return 0
    patch=$(jq --compact-output --arg own "$machine" --arg kind "$1" --arg annotation "$repairs_wait" --arg wait "$wait" '
      select((.data[$own] // "update " | startswith("update ")) == ($kind == "update"))
      | {metadata: {resourceVersion: .metadata.resourceVersion}, data: {($own): null}}
      | if $kind == "update" then .metadata.annotations[$annotation] = $wait else . end' <<<"${answer%$'\n'*}")
    [[ -n $patch ]] || return 0
    change_turns "$patch" && return
    ((tries-- > 0)) || return 1
    sleep 1
  done
}

has_turn() {
  local said
  said=$(take_turn update "$((drain_minutes + 30))") && return
  echo "this machine was not touched, since only one may be down: $said; run \`pulumi up\` again when that is back"
  return 1
}

await_turn() { watch has_turn; }

# Without a leader etcd acknowledges no write until it has elected another one.
give_leadership() {
  local own=https://127.0.0.1:2379 status members name url heir
  status=$(ask_etcd "$own/v3/maintenance/status" --fail --data '{}')
  jq --exit-status '.leader == .header.member_id' <<<"$status" >/dev/null || return 0
  members=$(ask_etcd "$own/v3/cluster/member/list" --fail --data '{}')
  while read -r name url; do
    [[ $(ask_etcd "$url/health" 2>&1) == *'"health":"true"'* ]] || continue
    heir=$(jq --raw-output --arg name "$name" '.members[] | select(.name == $name) | .ID' <<<"$members")
    ask_etcd "$own/v3/maintenance/transfer-leadership" --fail --output /dev/null --data "{\"targetID\": \"$heir\"}" ||
      continue
    say "$name leads etcd now"
    return
  done < <(etcd_peers "$members")
}

# Of one control plane that is down, the others are all that etcd's majority is made of.
may_be_down() {
  local amiss
  [[ $role != worker ]] || return 0
  amiss=$(peers_amiss 2>&1)
  [[ -z $amiss ]] || { echo "${amiss//$'\n'/; }" && return 1; }
}

ask_events() {
  # The first one of all may take two minutes: Azure begins then.
  curl --silent --show-error --fail --max-time 150 --noproxy '*' --header Metadata:true "$@" \
    'http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01'
}

acknowledge() { ask_events --output /dev/null --data "{\"StartRequests\": [{\"EventId\": \"$1\"}]}"; }

# say_on_node REASON WORDS...: an event of the Node, where `kubectl describe node` shows it
say_on_node() {
  say "$1: ${*:2}"
  ask_as_kubelet /api/v1/namespaces/default/events --output /dev/null --header 'Content-Type: application/json' \
    --data "$(jq --null-input --arg node "$machine" --arg reason "$1" --arg message "${*:2}" '(now | todate) as $now
      | {apiVersion: "v1", kind: "Event", type: "Normal", $reason, $message, count: 1,
        metadata: {generateName: "\($node).", namespace: "default"}, source: {component: "zoned-maintenance", host: $node},
        involvedObject: {kind: "Node", name: $node, uid: $node}, firstTimestamp: $now, lastTimestamp: $now}')" || true
}

# The event that this machine is at: its id, and what has become of it (drains or rests, until when in seconds since
# 1970, or acknowledged). It outlives a reboot.
handled=$state/maintenance
cordoned_for_event=zoned/cordoned-for-maintenance

# How long before its time an event is prepared for also out of turn, for it then comes unasked.
least_seconds=180

# How long a machine that could not be drained takes pods, and leaves the turn to others, before it tries again.
rest_seconds=3600

maintain() {
  local looks=0
  while :; do
    "$BASH" "$0" look_at_events || true
    ((looks++ % 12)) || "$BASH" "$0" repair || true
    sleep 5
  done
}

# Takes the bootstrap step's lock, and fails while that runs: it takes this member down by itself, and restarts
# zoned-maintenance when it ends.
exclude_step() {
  exec 9>"$root/run/zoned-bootstrap.lock"
  flock --nonblock 9
}

# When an event begins, in seconds since 1970. Of one that has begun Azure gives no time. Its documentation has both forms.
not_before='(.NotBefore | if . == "" then now else
  (strptime("%a, %d %b %Y %H:%M:%S GMT")? // strptime("%Y-%m-%dT%H:%M:%SZ")) | mktime end)'

# Each look goes on from what the machine, its Node and Azure say, wherever the one before has ended.
look_at_events() {
  local events is_over event unanswered=$root/run/zoned-events-unanswered
  # Once for each answer, since this is asked every few seconds.
  if ! events=$(ask_events 2>&1); then
    [[ $events == "$(cat "$unanswered" 2>/dev/null)" ]] || say "Azure's scheduled events cannot be asked for: $events"
    echo "$events" >"$unanswered"
    return 0
  fi
  rm -f "$unanswered"
  exclude_step || return 0
  # Whether what the machine was at is over, and the next event: Azure lists them in no order, and a redeploy may be days
  # away.
  read -r is_over event < <(jq --raw-output --arg machine "$machine" --arg at "$(cat "$handled" 2>/dev/null || true)" '.Events
    | map(select(any(.Resources[]; ascii_downcase == ($machine | ascii_downcase))))
    | (sort_by(.EventType == "Freeze", '"$not_before"')[0] // "") as $next
    | "\($at != "" and all(.EventId != ($at / " ")[0])) \($next)"' <<<"$events")
  if [[ -n $event ]] && { [[ $is_over == false ]] || is_awaited; }; then
    prepare "$event"
  elif [[ $is_over == true ]]; then
    recover
  fi
}

# removed, where an update has taken this Node out of the cluster; drained, where it has emptied it for Azure to restart or
# delete its machine; updating, where it drains it, or is about to upgrade it; else here, or silent where nobody says.
state_of_node() {
  local node state pods
  node=$(ask_api "$(node_path)" --max-time 20 --cert "$kubelet_certificate") || true
  state=$(jq --raw-output --arg mark "$drain_mark" '(.metadata.annotations[$mark] // "") as $own
    | if .code == 404 then "removed"
      elif .metadata.name == null then "silent"
      elif $own == "" or (.spec.unschedulable | not) then "here"
      elif $own / " " | index("upgrade") then "updating" else "drained" end' <<<"$node") || true
  # An update that was killed is over when its turn is.
  if [[ $state == @(updating|drained) ]] && ! has_line "$machine" update; then state=here; fi
  if [[ $state == drained ]] && { ! pods=$(drainable_pods) || [[ -n $pods ]]; }; then state=updating; fi
  echo "${state:-silent}"
}

# Whether an update that has drained or removed this machine waits for the next event, or what repairs it.
is_awaited() { [[ $(state_of_node) == @(drained|removed) ]] || is_repaired; }

# has_line NAME KIND: whether a line of the turns is there, of that kind, and not over
has_line() {
  local answer
  answer=$(ask_turns) && jq --exit-status --arg line "$1" --arg kind "$2" --arg now "$(date --utc +%FT%TZ)" \
    '(.data[$line] // "") / " " | .[0] == $kind and .[1] > $now' <<<"${answer%$'\n'*}" >/dev/null
}

# Whether a control plane restarts or redeploys it.
is_repaired() { has_line "repair.$machine" repair; }

# has_waited PHASE SECONDS: whether the event of prepare has been at that for so long, which begins where it is not
has_waited() {
  if [[ $phase != "$1" ]]; then
    phase=$1
    until=$((EPOCHSECONDS + $2))
    echo "$id $phase $until" >"$handled"
  fi
  ((EPOCHSECONDS >= until))
}

prepare() {
  local id type status left phase until why node held stays='' turn=yes minutes=30
  # The last try to drain it begins so long before its time.
  local last=$((drain_minutes * 60 + least_seconds))
  read -r id type status left < <(jq --raw-output '"\(.EventId) \(.EventType) \(.EventStatus) " +
    "\('"$not_before"' - now | floor)"' <<<"$1")
  if [[ $(cut --delimiter=' ' --fields=1 "$handled" 2>/dev/null) != "$id" ]]; then
    echo "$id" >"$handled"
    say_on_node "$type$status" "$(jq --raw-output '"\(.Description // "") Event \(.EventId) of Azure, " +
      "by \(.EventSource // "Platform" | ascii_downcase), not before \(.NotBefore)"' <<<"$1")"
  fi
  # A freeze takes seconds, and what has begun cannot be prepared for.
  [[ $type != Freeze && $status == Scheduled ]] || return 0
  read -r _ phase until <"$handled"
  node=$(state_of_node)
  # Whoever deletes a machine whose API stays silent wants that: on a control plane that has left etcd it does so.
  if [[ $node == silent && $type == Terminate ]]; then
    if has_waited silent 60 || ((left < least_seconds)); then node=removed; fi
  elif [[ $phase == silent ]]; then
    phase=
    echo "$id" >"$handled"
  fi
  # On another host its OS disk is blank: it goes there no sooner than it must.
  [[ -z $is_ephemeral || $type != Redeploy ]] || stays=yes
  # No kubelet ends the pods of a machine that is repaired, and one that is cordoned is repaired no further.
  if [[ $node == removed ]] || { [[ -z $stays ]] && is_repaired; }; then
    [[ $role == worker ]] || give_leadership || true
    acknowledge "$id"
    return
  fi
  [[ -z $stays ]] || ((left <= last)) || return 0
  [[ $phase != rests ]] || ((EPOCHSECONDS >= until || left <= last)) || return 0
  [[ $node != updating ]] || return 0
  # Azure may wait for others on that host, for days. A worker has no pods then, and its turn has ended by itself; a control
  # plane is a member of etcd.
  [[ $phase != acknowledged || $role != worker ]] || return 0
  [[ $node != silent ]] || { say "$type: the API does not say how this Node is" && return 1; }
  # It goes for good then, and at short notice.
  [[ $type != Terminate && $type != Preempt ]] || minutes=5
  # What an update has drained is down in the update's turn. The update has looked at the others before it began to drain.
  why=$({ may_be_down && { [[ $node == drained ]] || take_turn "$type" "$minutes"; }; } 2>&1) || turn=
  if [[ -z $turn ]]; then
    say "$type is not acknowledged: $why"
    ((left < least_seconds)) || return 0
  fi
  cordon "$cordoned_for_event" "$id"
  [[ $role == worker ]] || give_leadership || true
  held=$(held_pods)
  if [[ -n $held ]]; then
    say "$type waits for pods, for ${left} s at most: $held"
    [[ $phase != acknowledged ]] && has_waited drains $((drain_minutes * 60)) || return 0
    # Of a host that is about to fail Azure tells days ahead, in which no other machine could be down.
    ((left > last)) || return 0
    uncordon "$cordoned_for_event"
    end_turn other
    say_on_node "${type}Delayed" \
      "pods are still here after $drain_minutes minutes, and the next try is in an hour at most"
    echo "$id rests $((EPOCHSECONDS + rest_seconds))" >"$handled"
  elif [[ -n $turn && -z $stays ]]; then
    if [[ $phase != acknowledged ]] && ((minutes > 5)) && has_volumes && ! has_waited detaches 120; then
      say "$type waits for volumes, which are still attached, for two minutes at most"
      return
    fi
    acknowledge "$id"
    [[ $(<"$handled") == *acknowledged ]] || say_on_node "${type}Acknowledged" "no pods are left here, and Azure may go on with event $id"
    echo "$id acknowledged" >"$handled"
  fi
}

# When an event has ended Azure tells no more of it, which is also how it says that it thought better of it.
recover() {
  local begun words
  words=$(<"$handled")
  # One that has not come when its turn is over does not come.
  if [[ $words == "reboot $(boot_id)" ]] && has_line "$machine" reboot; then return; fi
  # The condition of its Node is that of before until a kubelet of this boot has spoken.
  begun=$((EPOCHSECONDS - $(cut --delimiter=. --fields=1 "$root/proc/uptime")))
  node_is_well
  [[ $role == worker ]] || control_plane_is_well >/dev/null
  # An update that has found it cordoned relies on that until its step has ended.
  [[ $(state_of_node) == here ]] || return 0
  uncordon "$cordoned_for_event"
  end_turn other
  say_on_node MaintenanceEnded "this machine is well after ${words%% *}"
  rm -f "$handled"
}

is_schedulable() { ask_as_kubelet "$(node_path)" | jq --exit-status '.spec.unschedulable != true' >/dev/null; }

# kured's sentinel, which it asks before it cordons: whether it may begin with this machine. After a drain that fails
# kured uncordons a Node whoever has cordoned it (cmd/kured/main.go).
may_reboot() { exclude_step && may_be_down && is_schedulable && take_turn reboot; }

# kured's way to reboot, when it has drained this machine. Where another one is down by now, or its bootstrap
# step is at work, kured tries again.
reboot_in_turn() {
  local tries=60
  until exclude_step && may_be_down && take_turn reboot 30; do
    exec 9>&-
    ((tries-- > 0)) || return 1
    sleep 10
  done
  [[ $role == worker ]] || give_leadership || true
  echo "reboot $(boot_id)" >"$handled"
  # It returns at once. The lock is held until the machine ends this, so that no step begins meanwhile.
  systemctl reboot && sleep 300
}

# What runs without an update asks by this file, without the payload, what it has to know of this machine and of
# the others.
keep_itself() {
  sed '/^#--- payload ---$/q' "$0" >"$root/opt/zoned/bootstrap.sh.new"
  mv "$root/opt/zoned/bootstrap.sh.new" "$root/opt/zoned/bootstrap.sh"
  cp "$run/variables" "$state/variables"
}

watch_events() {
  has_task repair || rm -f "$repair_settings"
  systemctl daemon-reload
  systemctl enable zoned-maintenance.service
  systemctl restart zoned-maintenance.service
}
