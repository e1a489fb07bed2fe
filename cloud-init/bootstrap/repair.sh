# shellcheck shell=bash
# Auto-repair: a worker that is not Ready is restarted, then redeployed, by the control plane that leads etcd.

# With CLIENT_ID, of the identity that may do it, RESOURCE_MANAGER, Azure Resource Manager's, and EPHEMERAL_POOLS, as
# their machines' names begin.
repair_settings=$root/opt/zoned/repair.env

# On the Node: the last step, or never, and when that was, or when Azure last refused the next one.
repaired=zoned/repaired
patience_seconds=600

# Azure ends a bootstrap step after 90 minutes. Until then that of a new Node may wait for it to be Ready.
joining_seconds=5400

# For a start, and for the quarter of an hour in which Azure waits for the word of a machine that does not hear it.
step_minutes=30

as_admin() { kubectl --kubeconfig "$admin" --request-timeout 30s "$@"; }

leads_etcd() {
  local status
  status=$(ask_etcd https://127.0.0.1:2379/v3/maintenance/status --fail --data '{}') || return
  jq --exit-status '.leader == .header.member_id' <<<"$status" >/dev/null
}

# The one machine that is not Ready of all that nobody has cordoned or switched off, if it is a worker, for long
# enough, and not about to join. The cordon of an event that came after its restart counts for none: it stays for as
# long as the machine is not Ready. Two at once are a zone, the network or a flaw of all, which no restart repairs. It
# is alone where no other machine of its zone is Ready: then the zone may be out.
sick_worker() {
  # shellcheck disable=SC2016 # jq's own
  jq --raw-output --argjson patience "$patience_seconds" --argjson joining "$joining_seconds" \
    --arg cordon "$cordoned_for_event" '
    def ready: first(.status.conditions[]? | select(.type == "Ready")) // {status: "Unknown"};
    def zone: .metadata.labels["topology.kubernetes.io/zone"];
    [.items[] | select((ready | .status) == "True") | zone] as $well
    | [.items[] | select((ready | .status) != "True")
      | select(.spec.unschedulable != true or (.metadata.annotations // {} | has("zoned/repaired") and has($cordon)))
      | select(any(.spec.taints[]?; .key == "node.cloudprovider.kubernetes.io/shutdown") | not)]
    | select(length == 1) | .[0]
    | select(.metadata.labels | has("node-role.kubernetes.io/control-plane") | not)
    | select(.spec.providerID != null)
    | select((.metadata.creationTimestamp | fromdate) < now - $joining)
    | select((ready | .lastTransitionTime // empty | fromdate) < now - $patience)
    | "\(.metadata.name) \(.spec.providerID | sub("^azure://"; "")) \(.metadata.annotations["zoned/repaired"] // "never 1970-01-01T00:00:00Z")" +
      if [zone] - $well == [] then "" else " alone" end' <<<"$1"
}

# Those that are Ready again.
forget_repairs() {
  local name
  jq --raw-output --arg repaired "$repaired" '.items[] | select(.metadata.annotations[$repaired] != null)
    | select(any(.status.conditions[]?; .type == "Ready" and .status == "True")) | .metadata.name' <<<"$1" |
    while read -r name; do
      machine=repair.$name end_turn other
      as_admin annotate node "$name" "$repaired-"
      machine=$name say_on_node Repaired "this machine is Ready again"
    done
}

# ask_azure PATH: a POST, by a token that stands in no argument of a process. It says the answer's status, 000 where there
# is none, and how long it took until the request was sent, 0 where it was not.
ask_azure() {
  (
    # shellcheck source=/dev/null
    . "$repair_settings"
    token=$(ask_metadata "identity/oauth2/token?api-version=2018-02-01&resource=${RESOURCE_MANAGER//:/%3A}%2F&client_id=$CLIENT_ID" |
      jq --raw-output .access_token)
    if [[ -s $root/etc/zoned/proxy.env ]]; then
      set -a
      # shellcheck source=/dev/null
      . "$root/etc/zoned/proxy.env"
      set +a
    fi
    curl --silent --show-error --fail --max-time 60 --output /dev/null --write-out '%{http_code} %{time_pretransfer}' --data '' \
      --header @<(printf 'Authorization: Bearer %s' "$token") "$RESOURCE_MANAGER$1?api-version=2024-11-01"
  )
}

# On another host a disk of the host's own is blank, and Azure takes the bootstrap step for done.
has_ephemeral_disk() {
  (
    # shellcheck source=/dev/null
    . "$repair_settings"
    [[ " ${EPHEMERAL_POOLS-} " == *" ${1%-*} "* ]]
  )
}

repair() {
  local nodes name id last since alone step why answer
  [[ $role == control-plane && -e $repair_settings ]] || return 0
  leads_etcd || return 0
  nodes=$(as_admin get nodes --output json)
  forget_repairs "$nodes"
  read -r name id last since alone <<<"$(sick_worker "$nodes")"
  [[ -n $name ]] || return 0
  (($(date --date "$since" +%s) < EPOCHSECONDS - step_minutes * 60)) || return 0
  case $last in
    never) step=restart ;;
    restart)
      # A machine for which Azure finds no other host, as in a zone that is out, stays off.
      [[ -z $alone ]] || return 0
      ! has_ephemeral_disk "$name" || return 0
      step=redeploy
      ;;
    *) return 0 ;;
  esac
  if ! why=$(machine=repair.$name take_turn repair "$step_minutes"); then
    say "$name is not repaired: $why"
    return
  fi
  as_admin annotate --overwrite node "$name" "$repaired=$step $(date --utc +%FT%TZ)"
  machine=$name say_on_node "Repair${step^}" "this machine was not Ready for ten minutes, and $(uname -n) has Azure $step it"
  answer=$(ask_azure "$id/$step") && return
  as_admin annotate --overwrite node "$name" "$repaired=$last $(date --utc +%FT%TZ)"
  machine=$name say_on_node RepairFailed "Azure does not $step this machine: journalctl --unit zoned-maintenance on $(uname -n)"
  # Azure may have begun with what it was sent and has not answered, or with a 5xx: that turn ends by itself.
  [[ $answer == "000 "*[1-9]* || $answer == 5* ]] || machine=repair.$name end_turn other
}
