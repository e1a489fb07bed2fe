# shellcheck shell=bash
# The API, as a machine finds it and asks it.

# ask_metadata PATH: of this machine. While the service is updated, for up to 70 seconds, it answers 410 or 404; curl
# waits 1 s, 2 s, 4 s and so on, 127 s in all.
ask_metadata() {
  curl --silent --show-error --fail --max-time 10 --retry 7 --retry-all-errors --noproxy '*' --header Metadata:true \
    "http://169.254.169.254/metadata/$1"
}

own_id() { ask_metadata 'instance/compute/vmId?api-version=2021-02-01&format=text'; }

# ask_api PATH [CURL'S OPTION...]
ask_api() {
  curl --silent --show-error --noproxy '*' --cacert "$pki/ca.crt" "${@:2}" \
    "https://$api_name:$api_port$1"
}

# Whatever it says, a server that proves itself by this cluster's CA is this cluster.
api_answers() {
  local code=0
  ask_api /readyz --output /dev/null --max-time 5 || code=$?
  ((code == 0)) && return
  if ((code == 51 || code == 60)); then
    reason "at https://$api_name:$api_port somebody else's cluster answers, one with another CA:" \
      "take it away, or give this one another name (zoned:clusterName)"
    exit 1
  fi
  return 1
}

# The entry is known by the name: cloud-init moves tabs and comments when it writes this file anew.
name_entry() { echo "[[:space:]]${api_name//./\\.}\\([[:space:]#]\\|\$\\)"; }

name_is_elsewhere() { sed -i "/$(name_entry)/d" "$root/etc/hosts"; }

name_is_at() {
  name_is_elsewhere
  echo "$1 $api_name # zoned" >>"$root/etc/hosts"
}

name_is_here() { name_is_at 127.0.0.1; }

# An internal balancer drops what it would send back to its sender, and takes this machine into account as
# soon as its API server runs, in the middle of a join. Until that has ended the name means another control plane.
name_is_at_peer() {
  local endpoint endpoints peer
  endpoints=$(etcd_endpoints)
  for endpoint in $endpoints; do
    peer=${endpoint#https://}
    peer=${peer%:*}
    [[ $peer != "$address" ]] || continue
    ask_api /readyz --fail --output /dev/null --max-time 5 --resolve "$api_name:$api_port:$peer" || continue
    name_is_at "$peer"
    return
  done
  reason "no API server of another control plane answers this machine; asked: ${endpoints//$'\n'/, }"
  return 1
}

# As long as pods may mean another control plane by the API's name.
renamed=$state/renamed

# A pod on the host's network keeps the /etc/hosts that the machine had when it started.
restart_host_pods() {
  local pods namespace pod
  pods=$(kubectl --kubeconfig "$admin" --request-timeout 30s get pods --all-namespaces \
    --field-selector "spec.nodeName=$machine" --output json)
  jq --raw-output '.items[] | select(.spec.hostNetwork) | .metadata
    | select((.annotations // {}) | has("kubernetes.io/config.mirror") | not) | "\(.namespace) \(.name)"' <<<"$pods" |
    while read -r namespace pod; do
      kubectl --kubeconfig "$admin" --request-timeout 30s --namespace "$namespace" delete pod "$pod" \
        --ignore-not-found --wait=false
    done
  rm "$renamed"
}

kubectl_join() { kubectl --kubeconfig "$discovery" --request-timeout 30s "$@"; }

# An API server that has just begun knows no token yet; what it refuses for two minutes has expired.
await_api() {
  local said last='' tries=24
  until said=$(find_node 2>&1); do
    if [[ $said == *Unauthorized* ]] && ((tries-- == 0)); then
      reason "the API does not know the join token of $machine, which lasts one day: run \`pulumi up\` again, without" \
        "--replace and --target, and it makes another one"
      return 1
    fi
    [[ $said == "$last" ]] || reason "$said"
    last=$said
    sleep 5
  done
}

# Azure's balancer sends no request here before its probe has seen this API server twice, and objects are
# applied through it next. That it does not answer is no failure, and an internal one is not asked.
await_balancer() {
  local tries=24
  [[ -n $api_address ]] || return 0
  until ask_api /readyz --fail --output /dev/null --max-time 5 --resolve "$api_name:$api_port:$api_address"; do
    if ((tries-- == 0)); then
      say "no answer from https://$api_address:$api_port, the balancer's address"
      return
    fi
    sleep 5
  done
}

ask_as_kubelet() {
  ask_api "$1" --fail --max-time 20 \
    --cert "$kubelet_certificate" "${@:2}"
}
