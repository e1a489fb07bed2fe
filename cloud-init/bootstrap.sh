#!/usr/bin/env bash
# The second half of what happens on a machine: it initializes the cluster or joins it, and ends when the
# node is well. Azure's custom script extension runs this file as root, and again after every change
# of it. A member that has another version or another configuration it upgrades; else it looks and ends.
#
# Its input is the JSON document below the marker in its own last line. On failure the
# last lines are the end of the log, then the step and its exit code: Azure shows the last 4 KB.
#
# shellcheck disable=SC2317 # steps call functions by their names
set -Eeuo pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export HOME=${HOME:-/root}

# Empty on a machine; tests put a folder of their own here.
root=${ZONED_ROOT:-}
log=$root/var/log/zoned.log
state=$root/var/lib/zoned
run=$root/run/zoned
pki=$root/etc/kubernetes/pki
kubelet_certificate=$root/var/lib/kubelet/pki/kubelet-client-current.pem
discovery=$root/etc/zoned/discovery.conf
init_config=$root/etc/zoned/kubeadm-init.yaml
join_config=$root/etc/zoned/kubeadm-join.yaml
kubelet_config=$root/etc/zoned/kubeadm-kubelet.yaml
upgrade_config=$root/etc/zoned/kubeadm-upgrade.yaml
admin=$root/etc/kubernetes/admin.conf

# What the payload says; its first step fills these in.
machine='' role='' initial_control_plane='' api_name='' api_port='' api_address='' version='' address='' awaits_ready=''
configuration='' cluster='' drain_minutes='' restored_from=''
modules=()
tasks=()
upgraded=''

# Azure gives up after 90 minutes, and then the step that failed is not known.
export ZONED_DEADLINE=${ZONED_DEADLINE:-$(($(date +%s) + 85 * 60))}

say() { printf '%(%Y-%m-%dT%H:%M:%SZ)T %s\n' -1 "$*"; }

# A full disk, which the log cannot be written to, ends nothing here: it would end without a word.
note() { say "bootstrap: $*" | tee -a "$log" || true; }

# What a step's process says of the command that ended it.
report_failure() { say "exit code $1 of: ${2%%$'\n'*} (line $3)" >&2; }

# What the last line of the output is to say, besides the step's name.
reason() {
  say "$*"
  echo "$*" >"$run/reason"
}

# step NAME SECONDS RETRIES FUNCTION: runs the function in a process of its own, so that a time
# limit holds for all that it starts, and so that the first command to fail ends it.
step() {
  local name=$1 limit=$2 retries=$3 function=$4 code pause=5 started left full=
  while :; do
    left=$((ZONED_DEADLINE - $(date +%s)))
    limit=$((limit < left ? limit : left))
    started=$SECONDS
    code=0
    rm -f "$run/reason"
    say "bootstrap: $name: begins" >>"$log" || true
    timeout --kill-after=15 "$((limit > 1 ? limit : 1))" "$BASH" "$0" "$function" \
      </dev/null >>"$log" 2>&1 9>&- || code=$?
    if ((code == 0)); then
      note "$name: done after $((SECONDS - started)) s"
      return
    fi
    ((code == 124 || code == 137)) && note "$name: stopped, $limit s were not enough"
    ((retries-- > 0 && left > 60)) || break
    note "$name: exit code $code, next try in $pause s"
    sleep "$pause"
    pause=$((pause < 30 ? pause * 2 : 30))
  done
  (($(stat --file-system --format '%f * %S' "$state") > 1024 * 1024)) ||
    full=$(df --human-readable "$state" | tail --lines=1)
  rm -f "$state/spare"
  note "$name: failed with exit code $code"
  {
    echo "--- end of /var/log/zoned.log on $(uname -n):"
    tail --bytes=2800 "$log"
    echo "---"
    [[ -e $run/reason ]] && printf '%s\n' "$(head --bytes=800 "$run/reason")"
    [[ -z $full ]] || echo "no space left on device: $full," \
      "make room or take a larger disk (zoned:osDiskSizeGb)"
    echo "step \"$name\" failed with exit code $code"
  } >&2 || true
  exit "$code"
}

# has_task NAME: whether the step does this besides; see Task in components/machine/payload.ts.
has_task() { [[ " ${tasks[*]} " == *" $1 "* ]]; }

# payload variables: what the steps need, as shell assignments.
# payload files: keys and configuration, each where it belongs.
# payload settings: the same without the keys, which a member has.
# payload authorities: the keys alone, for a member that takes other CAs.
payload() {
  python3 - "$0" "$1" "$run/variables" "$root" <<'END'
import json, os, shlex, shutil, sys
script, what, variables, root = sys.argv[1:]
os.umask(0o077)
text = open(script, encoding="utf-8").read().split("\n#--- payload ---\n", 1)[1]
if not text.strip():
    sys.exit("the payload is gone, since this script has done its work: run `pulumi up` for more")
payload = json.loads(text)
if what == "variables":
    names = {"machine": "machine", "role": "role", "initial_control_plane": "initialControlPlane", "api_name": "apiName",
             "api_port": "apiPort", "api_address": "apiAddress", "version": "kubernetesVersion",
             "configuration": "configuration", "cluster": "clusterConfiguration",
             "drain_minutes": "drainMinutes", "address": "nodeAddress", "restored_from": "restoredFrom"}
    with open(variables, "w") as file:
        for name, key in names.items():
            file.write(f"{name}={shlex.quote(str(payload.get(key, '')))}\n")
        file.write(f"modules=({shlex.join(payload['modules'])})\n")
        file.write(f"awaits_ready={'yes' if payload.get('awaitsReady', True) else ''}\n")
        file.write(f"tasks=({shlex.join(payload['tasks'])})\n")
    sys.exit()
# kubeadm applies every patch that it finds there.
if what != "authorities":
    shutil.rmtree(root + "/etc/zoned/patches", ignore_errors=True)
for entry in payload["files"]:
    path = root + entry["path"]
    is_key = entry["path"].startswith("/etc/kubernetes/")
    if what == "settings" and is_key or what == "authorities" and not is_key:
        continue
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), int(entry["mode"], 8))
        file.write(entry["content"])
    os.replace(path + ".new", path)
END
}

read_payload() {
  payload variables
  if [[ -e $state/joined ]]; then
    payload settings
    return
  fi
  # As first boot makes it: for everybody to look into, unlike the folders of what is secret.
  mkdir -p "$root/etc/kubernetes"
  payload files
}

first_boot_again() {
  say "first boot did not end well ($1), so it runs again"
  "$root/opt/zoned/first-boot.sh" >/dev/null || {
    reason "first boot failed: $(cat "$state/first-boot.failed")"
    return 1
  }
}

await_first_boot() {
  local boot
  if [[ -e $state/first-boot.failed ]]; then
    first_boot_again "$(cat "$state/first-boot.failed")"
  fi
  while :; do
    boot=$(cloud-init status 2>/dev/null || true)
    [[ -e $state/first-boot.done ]] && return
    if [[ -e $state/first-boot.failed ]]; then
      reason "first boot failed: $(cat "$state/first-boot.failed")"
      return 1
    fi
    # A reboot in its midst ends it for good.
    if [[ $boot =~ status:\ (done|error|degraded|disabled) ]]; then
      first_boot_again "interrupted"
    else
      sleep 5
    fi
  done
}

load_modules() {
  local module missing=()
  for module in "${modules[@]}"; do
    modprobe "$module" || missing+=("$module")
  done
  if ((${#missing[@]} > 0)); then
    reason "kernel $(uname -r) has no module ${missing[*]}, which kube-proxy's mode needs:" \
      "choose another (zoned:proxyMode, zoned:proxyScheduler)" \
      "or an image that has it (zoned:imageVersion)"
    return 1
  fi
  mkdir -p "$root/etc/modules-load.d"
  printf '%s\n' "${modules[@]}" >"$root/etc/modules-load.d/zoned-proxy.conf"
}

version_of() {
  case $1 in
    kubeadm) kubeadm version --output short ;;
    kubelet) kubelet --version | cut --delimiter ' ' --fields 2 ;;
  esac
}

has_version() { [[ $(version_of "$1") == "v$version" ]]; }

# apt leaves a package alone that it has installed, whatever became of its program.
expect_version() {
  has_version "$1" && return
  reason "$(type -P "$1") is of version $(version_of "$1") after package $1 of v$version was installed: remove the program" \
    "that hides it, or reinstall the package (apt-get install --reinstall $1), and run \`pulumi up\` again"
  return 1
}

# A machine that was made for another version and has not joined yet.
match_version() {
  has_version kubeadm && return
  first_boot add_package_source
  first_boot install_kubernetes
  expect_version kubeadm
  first_boot pull_images
}

own_id() {
  curl --silent --show-error --fail --max-time 10 --retry 5 --noproxy '*' --header Metadata:true \
    'http://169.254.169.254/metadata/instance/compute/vmId?api-version=2021-02-01&format=text'
}

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

name_is_here() {
  grep --quiet "$(name_entry)" "$root/etc/hosts" ||
    echo "127.0.0.1 $api_name # zoned" >>"$root/etc/hosts"
}

name_is_elsewhere() { sed -i "/$(name_entry)/d" "$root/etc/hosts"; }

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

kubectl_join() { kubectl --kubeconfig "$discovery" --request-timeout 30s "$@"; }

find_node() { kubectl_join get node "$machine" --ignore-not-found --output name; }

forget_node() {
  local node
  node=$(find_node)
  [[ -n $node ]] || return 0
  say "removing the node $machine that was here before"
  kubectl_join delete node "$machine" --ignore-not-found --wait=false
}

# Of several CAs the first one signs. kubeadm reads no other (TryLoadCertFromDisk in
# cmd/kubeadm/app/util/pkiutil), and has the kubeconfigs that it writes trust that one alone.
trust_authorities() {
  local data
  data=$(base64 --wrap=0 "$pki/ca.crt")
  sed --in-place "s|\(certificate-authority-data:\) .*|\1 $data|" "$@"
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

decide() {
  local own tries=3
  if is_half_done && [[ -e $state/initialization ]]; then
    say "an earlier run began to initialize the cluster here, and did not end"
    name_is_elsewhere
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

note_settings() { cluster_settings "$1" annotate --overwrite "zoned/configuration=$cluster"; }

# become initialized|joined: with what it was configured, else it would be upgraded at once.
become() {
  echo "$configuration" >"$state/configuration"
  echo "$1" >"$state/joined"
}

initialize() {
  if is_half_done; then
    name_is_elsewhere
    reset_machine
  fi
  name_is_here
  touch "$state/initialization"
  if [[ -n $restored_from ]]; then
    restore_etcd
    # Patched by the program (upgradeConfiguration in kubeadm.ts), and in the snapshot as it was.
    kubeadm init --config "$init_config" --skip-token-print --skip-phases addon/kube-proxy \
      --ignore-preflight-errors DirAvailable--var-lib-etcd
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
  "$state/etcdutl" snapshot status "$state/snapshot.db" || {
    reason "etcdutl cannot read snapshot $restored_from: name an older one (pulumi config set restoreFrom)"
    return 1
  }
}

# Watches have seen revisions that the snapshot does not know. Past all of them, and with what was
# before compacted away, every client lists anew (etcd's guide "Disaster recovery").
restore_etcd() {
  local own=https://$address:2380
  rm -rf "$root/var/lib/etcd"
  "$state/etcdutl" snapshot restore "$state/snapshot.db" --data-dir "$root/var/lib/etcd" --name "$machine" \
    --initial-cluster "$machine=$own" --initial-advertise-peer-urls "$own" \
    --initial-cluster-token "zoned-$(date --utc +%Y%m%dT%H%M%SZ)" --bump-revision 1000000000 --mark-compacted
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

save_snapshot() { etcd_snapshot save any; }

snapshot_unit=zoned-etcd-snapshot
snapshot_units=$root/etc/systemd/system/$snapshot_unit

# What saves snapshots came with the payload; where it does not come any more, it goes.
schedule_snapshots() {
  if has_task snapshots; then
    systemctl daemon-reload
    systemctl enable "$snapshot_unit.timer"
    systemctl restart "$snapshot_unit.timer"
    return
  fi
  systemctl disable --now "$snapshot_unit.timer"
  rm -f "$snapshot_units".{timer,service} "$root"/opt/zoned/etcd-snapshot.{sh,env}
  systemctl daemon-reload
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
    has_settings "$discovery" || {
      kubeadm init phase upload-config all --config "$init_config" --kubeconfig "$discovery"
      note_settings "$discovery"
    }
  fi
  forget_node
  kubeadm_join || code=$?
  if ((code != 0)); then
    # In a process of its own, so that its first failure ends it: what etcd still counts is not reset.
    "$BASH" "$0" undo_join || say "the join could not be undone yet; the next try begins with that"
    return "$code"
  fi
  touch "$state/touched"
  become joined
  if [[ $role == control-plane ]]; then name_is_here; fi
}

# One line per change, so that the end of the log says what a step was waiting for.
watch() {
  local now last=
  until now=$("$@" 2>&1); do
    [[ $now == "$last" ]] || reason "$now"
    last=$now
    sleep 5
  done
}

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

control_plane_is_well() {
  ask_api /readyz --fail --max-time 10 --resolve "$api_name:$api_port:127.0.0.1" &&
    curl --silent --show-error --fail --max-time 10 --noproxy '*' http://127.0.0.1:2381/health
}

# Azure's balancer sends no request here before its probe has seen this API server twice, and objects are
# applied through it next. That it does not answer a machine behind it is no failure.
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

ask_as_kubelet() {
  ask_api "$1" --fail --max-time 20 \
    --cert "$kubelet_certificate" "${@:2}"
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
  local begun
  begun=$(date +%s)
  watch node_is_well
}

boot_id() { cat "$root/proc/sys/kernel/random/boot_id"; }

# This machine has joined or was rebooted, and no run has seen the cluster whole since.
is_touched() {
  [[ -e $state/touched ]] || { [[ -e $state/boot ]] && [[ $(boot_id) != $(<"$state/boot") ]]; }
}

# A member is what the last run that ended well made of it.
is_outdated() { [[ $(cat "$state/configuration" 2>/dev/null) != "$configuration" ]]; }

# first_boot FUNCTION: a part of the first boot, with the settings of now
first_boot() { "$root/opt/zoned/first-boot.sh" "$1"; }

upgrade_kubeadm() {
  if ! has_version kubeadm; then
    first_boot add_package_source
    first_boot install_kubeadm
    expect_version kubeadm
  fi
  # Ahead of the drain, also when an earlier try ended between the two.
  has_version kubelet || first_boot pull_images
}

# A kubelet may evict the pods that run on its own node, and cordon that, by its own certificate
# (Node authorization mode and the admission plugin NodeRestriction).
node_path() { echo "/api/v1/nodes/$machine"; }

patch_node() {
  ask_as_kubelet "$(node_path)" --output /dev/null --request PATCH \
    --header 'Content-Type: application/merge-patch+json' --data "$1"
}

# annotate NAME VALUE, the value as JSON
annotate() { patch_node "{\"metadata\": {\"annotations\": {\"$1\": $2}}}"; }

cordoned_by=zoned/cordoned-for-upgrade

cordon() {
  local node
  node=$(ask_as_kubelet "$(node_path)")
  # A cordon that this script did not set stays.
  jq --exit-status '.spec.unschedulable == true' <<<"$node" >/dev/null && return
  patch_node "{\"metadata\": {\"annotations\": {\"$cordoned_by\": \"$version\"}},
    \"spec\": {\"unschedulable\": true}}"
}

uncordon() {
  local node
  node=$(ask_as_kubelet "$(node_path)")
  jq --exit-status --arg by "$cordoned_by" '.metadata.annotations[$by]' <<<"$node" >/dev/null || return 0
  patch_node "{\"metadata\": {\"annotations\": {\"$cordoned_by\": null}},
    \"spec\": {\"unschedulable\": null}}"
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

# What keeps pods on this node; those that may go are evicted.
held_pods() {
  local pods namespace name deleted
  pods=$(drainable_pods) || return
  while read -r namespace name deleted; do
    [[ -n $namespace ]] || continue
    if [[ -n $deleted ]]; then echo "$namespace/$name has not ended yet"; else evict "$namespace" "$name"; fi
  done <<<"$pods" | paste --serial --delimiters ';'
}

drain() {
  local held until=$((SECONDS + drain_minutes * 60))
  cordon
  while ! held=$(held_pods) || [[ -n $held ]]; do
    reason "$held"
    if ((SECONDS > until)); then
      uncordon
      reason "after $drain_minutes minutes pods are still on this machine, which was not touched and takes pods" \
        "again: $held. Let them go, or give them longer (zoned:drainMinutes), and run \`pulumi up\` again"
      return 1
    fi
    sleep 5
  done
}

# kubeadm writes it when it initializes, and never again.
publish_authorities() {
  local info data
  local kubectl=(kubectl --kubeconfig "$admin" --request-timeout 30s --namespace kube-public)
  info=$("${kubectl[@]}" get configmap cluster-info --ignore-not-found --output json)
  [[ -n $info ]] || return 0
  data=$(base64 --wrap=0 "$pki/ca.crt")
  jq --arg data "$data" '.data.kubeconfig |= sub("(?<name>certificate-authority-data:) .*"; "\(.name) \($data)")' \
    <<<"$info" | "${kubectl[@]}" replace --filename -
}

upgrade_control_plane() {
  # A certificate that has all names is left as it is, and the API server reads another one by itself.
  kubeadm init phase certs apiserver --config "$init_config" || {
    rm -f "$pki"/apiserver.{crt,key}
    kubeadm init phase certs apiserver --config "$init_config"
  }
  if has_settings "$admin"; then
    kubeadm upgrade node --config "$upgrade_config"
    return
  fi
  kubeadm init phase upload-config all --config "$init_config"
  kubeadm upgrade apply --yes --config "$upgrade_config"
  ! has_task cas || publish_authorities
  note_settings "$admin"
}

# Before any certificate is another one: what runs here already trusts the CA that signs from now on.
take_authorities() {
  if [[ $role == control-plane ]]; then
    payload authorities
  else
    jq --raw-output '.clusters[0].cluster["certificate-authority-data"]' "$discovery" |
      base64 --decode >"$pki/ca.crt.new"
    mv "$pki/ca.crt.new" "$pki/ca.crt"
  fi
  trust_authorities "$root"/etc/kubernetes/*.conf
}

# The one of the CA that signs, and of none that is only still trusted.
kubelet_certificate_is_current() {
  openssl verify -CAfile <(openssl x509 -in "$pki/ca.crt") "$kubelet_certificate"
}

# A control plane holds the CA; which controller manager would sign, one of this stage or of the one
# before, nobody knows.
sign_kubelet_certificate() {
  local data
  kubeadm kubeconfig user --config "$init_config" --client-name "system:node:$machine" --org system:nodes |
    sed --quiet 's/.*client-\(certificate\|key\)-data: //p' |
    while read -r data; do base64 --decode <<<"$data"; done
}

# As a kubelet asks for it, which it does by itself only when the one that it has is about to end.
request_kubelet_certificate() {
  local key request name certificate='' tries=60
  local requests=/apis/certificates.k8s.io/v1/certificatesigningrequests
  key=$(openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)
  request=$(openssl req -new -key <(echo "$key") -subj "/O=system:nodes/CN=system:node:$machine" | base64 --wrap=0)
  name=$(ask_as_kubelet "$requests" --header 'Content-Type: application/json' --data "{
    \"apiVersion\": \"certificates.k8s.io/v1\", \"kind\": \"CertificateSigningRequest\",
    \"metadata\": {\"generateName\": \"node-csr-\"}, \"spec\": {\"request\": \"$request\",
      \"signerName\": \"kubernetes.io/kube-apiserver-client-kubelet\",
      \"usages\": [\"digital signature\", \"client auth\"]}}" | jq --raw-output .metadata.name)
  until [[ -n $certificate ]]; do
    if ((tries-- == 0)); then
      reason "certificate request $name of this kubelet was not signed in five minutes: kubectl describe csr $name" >&2
      return 1
    fi
    sleep 5
    certificate=$(ask_as_kubelet "$requests/$name" | jq --raw-output '.status.certificate // empty')
  done
  base64 --decode <<<"$certificate"
  echo "$key"
}

# The kubelet reads it when it starts, which is next.
renew_kubelet_certificate() {
  local file
  kubelet_certificate_is_current && return
  file=${kubelet_certificate%current.pem}$(date --utc +%F-%H-%M-%S).pem
  (
    umask 077
    if [[ $role == control-plane ]]; then sign_kubelet_certificate; else request_kubelet_certificate; fi >"$file"
  )
  ln --symbolic --force --no-dereference "$file" "$kubelet_certificate"
  kubelet_certificate_is_current
}

# One that trusts several goes back to the first one by a stage that is the last, or that was taken back.
trusts_several() { (($(grep --count 'BEGIN CERTIFICATE' "$pki/ca.crt") > 1)); }

upgrade_member() {
  touch "$state/touched"
  if trusts_several; then tasks+=(cas); fi
  ! has_task cas || take_authorities
  if [[ $role == control-plane ]]; then
    upgrade_control_plane
  else
    kubeadm upgrade node --config "$upgrade_config"
  fi
  has_task cas || return 0
  trust_authorities "$root"/etc/kubernetes/*.conf
  renew_kubelet_certificate
}

# Its flags and its configuration, which kubeadm writes for this machine, and a start with them.
upgrade_kubelet() {
  if ! has_version kubelet; then
    first_boot install_kubelet
    expect_version kubelet
  fi
  kubeadm init phase kubelet-start --config "$kubelet_config"
}

settle() {
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

# Their timer goes on when this step has ended, and asks by means of this file, without the payload, what
# it has to know of this machine and of the others.
keep_certificates() {
  sed '/^#--- payload ---$/q' "$0" >"$root/opt/zoned/bootstrap.sh"
  cp "$run/variables" "$state/variables"
  systemctl daemon-reload
  systemctl enable --now zoned-certificates.timer
  "$BASH" "$root/opt/zoned/renew-certificates.sh" report
}

# Every API server encrypts with the new key by now, so a Secret that was written or removed since it
# was read needs nothing more.
rewrite_secrets() {
  local said
  local kubectl=(kubectl --kubeconfig "$admin")
  said=$({ "${kubectl[@]}" get secrets --all-namespaces --output json | "${kubectl[@]}" replace --filename - >/dev/null; } 2>&1) && return
  said=$(grep --invert-match --extended-regexp '^Error from server \((Conflict|NotFound)\): error when replacing' <<<"$said") || return 0
  reason "not every Secret is encrypted with the new key yet, and none is lost: $said"
  return 1
}

authorities_are_published() {
  local published
  published=$(kubectl --kubeconfig "$admin" --request-timeout 30s --namespace kube-system \
    get configmap kube-root-ca.crt --output 'jsonpath={.data.ca\.crt}') || return
  [[ $published == "$(<"$pki/ca.crt")" ]] && return
  echo "pods do not get the new CAs yet: ConfigMap kube-root-ca.crt in kube-system has others"
  return 1
}

# What is in a pod reads its CAs when it starts. These are the cluster's own, add-ons among them.
restart_pods() {
  local namespace
  local kubectl=(kubectl --kubeconfig "$admin" --request-timeout 30s)
  watch authorities_are_published
  for namespace in $("${kubectl[@]}" get namespaces --output name | sed --quiet 's|^namespace/\(kube-.*\)|\1|p'); do
    "${kubectl[@]}" --namespace "$namespace" get daemonsets,deployments --output name |
      xargs --no-run-if-empty "${kubectl[@]}" --namespace "$namespace" rollout restart
  done
}

# A new file in its place: what runs goes on with the one that it has open.
forget_payload() { sed --in-place '/^#--- payload ---$/q' "$0"; }

forget_secrets() {
  rm -f "$discovery" "$init_config" "$join_config" "$kubelet_config" "$upgrade_config" "$root/etc/zoned/kubeadm-reset.yaml"
  forget_payload
}

# Before each try of an upgrade kubeadm copies etcd's data, and it keeps every copy: on a disk that is not
# for that (cmd/kubeadm/app/phases/upgrade/staticpods.go). Once the member is well they are not needed.
forget_copies() { rm -rf "$root"/etc/kubernetes/tmp/kubeadm-*; }

finish() {
  first_boot remove_package_source
  settle
  forget_copies
  forget_secrets
}

# Those of the step that runs, or of the last one.
for variables in "$run/variables" "$state/variables"; do
  # shellcheck source=/dev/null
  if [[ -e $variables ]]; then . "$variables" && break; fi
done

if (($# > 0)); then
  trap 'report_failure $? "$BASH_COMMAND" $LINENO' ERR
  "$@"
  exit
fi

mkdir -p "$state" "$run" "$(dirname "$log")"
chmod 0700 "$run"
exec 9>"$root/run/zoned-bootstrap.lock"
flock 9
rm -f "$run"/*
# However it ends, nothing is left of the keys that came with it: another run brings them again.
end() {
  first_boot resume_upgrades >>"$log" 2>&1 || true
  forget_payload
  rm -rf "$run" "$state/snapshot.db" "$state/etcdutl"
}
trap end EXIT
touch "$log"
chmod 0600 "$log"
# Room to say what went wrong where a step fills the disk.
head --bytes=64K /dev/zero >"$state/spare" || true

step "payload" 300 0 read_payload
# shellcheck source=/dev/null
. "$run/variables"
step "first boot" 3000 0 await_first_boot
first_boot pause_upgrades >>"$log" 2>&1 || true
step "kernel modules" 60 1 load_modules

if [[ ! -e $state/joined ]]; then
  step "packages" 1800 3 match_version
  if [[ $role == control-plane ]]; then
    step "search for the API" 900 0 decide
    if [[ $(<"$run/decision") == initialize ]]; then
      [[ -z $restored_from ]] || step "snapshot" 2400 1 fetch_snapshot
      step "kubeadm init" 1500 1 initialize
    else
      step "kubeadm join" 1500 3 join
    fi
  else
    step "search for the API" 1200 0 await_api
    step "kubeadm join" 1200 5 join
  fi
elif is_outdated; then
  upgraded=yes
  # kubeadm is content with a majority of etcd, and would take the next member from it. One that an
  # upgrade has left half done is put right whatever the others are.
  [[ $role == worker ]] || ! control_plane_is_well >>"$log" 2>&1 || step "other control planes" 600 0 await_peers
  # From here on it is half of each until all has ended well, also where the change is taken back.
  rm -f "$state/configuration"
  step "packages" 1800 3 upgrade_kubeadm
  has_version kubelet || ! has_task snapshots || step "snapshot" 1200 1 save_snapshot
  has_version kubelet || step "drain" $((drain_minutes * 60 + 120)) 0 drain
  step "kubeadm upgrade" 1800 1 upgrade_member
  step "kubelet" 900 2 upgrade_kubelet
  [[ $role == worker ]] || step "static pods" 900 0 await_static_pods
fi

[[ $role == worker ]] || step "control plane" 900 0 await_control_plane
if has_task snapshots || [[ -e $snapshot_units.timer ]]; then step "snapshots" 60 1 schedule_snapshots; fi
# Before there is a pod network, the initial control plane cannot be Ready.
if [[ $(<"$state/joined") == joined ]] || has_pod_network; then
  step "node" 1500 0 await_node
fi
if [[ -n $upgraded ]]; then step "uncordon" 120 5 uncordon; fi
# The next machine begins when this step ends. A change that touches no machine waits for none.
if [[ $role == control-plane ]] && is_touched; then
  step "other control planes" 600 0 await_peers
fi
[[ $role == worker ]] || step "certificates" 120 2 keep_certificates
! has_task restart-pods || step "pods" 600 2 restart_pods
! has_task rewrite-secrets || step "encryption" 1800 5 rewrite_secrets
step "secrets" 60 0 finish
note "$machine is a member of the cluster"
exit
#--- payload ---
