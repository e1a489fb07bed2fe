#!/usr/bin/env bash
# The second half of what happens on a machine: it initializes the cluster or joins it, and ends when the
# node is well. Azure's custom script extension runs this file as root, and again after every change
# of it. A member that has another version or another configuration it upgrades; else it looks and ends.
#
# Its input is the JSON document below the marker in its own last line. On failure the
# last lines are the end of the log, then the step and its exit code: Azure shows the last 4 KB.
#
# shellcheck source-path=SCRIPTDIR/bootstrap
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
patches=$root/etc/zoned/patches
admin=$root/etc/kubernetes/admin.conf

# What the payload says; its first step fills these in.
machine='' role='' initial_control_plane='' api_name='' api_port='' api_address='' version='' address='' awaits_ready='' is_api_private=''
configuration='' cluster='' drain_minutes='' restored_from='' max_pods='' room='' is_ephemeral=''
modules=()
tasks=()

# Azure gives up after 90 minutes, and then the step that failed is not known.
export ZONED_DEADLINE=${ZONED_DEADLINE:-$((EPOCHSECONDS + 85 * 60))}

# On a machine they are in this very file: see bootstrapText in components/machine/payload.ts.
parts=${BASH_SOURCE[0]%/*}/bootstrap
. "$parts/runner.sh"
. "$parts/payload.sh"
. "$parts/packages.sh"
. "$parts/api.sh"
. "$parts/init.sh"
. "$parts/snapshots.sh"
. "$parts/reservations.sh"
. "$parts/join.sh"
. "$parts/health.sh"
. "$parts/drain.sh"
. "$parts/maintenance.sh"
. "$parts/repair.sh"
. "$parts/upgrade.sh"
. "$parts/rotate.sh"

# Those of the step that runs, or of the last one.
for variables in "$run/variables" "$state/variables"; do
  # shellcheck source=/dev/null
  if [[ -e $variables ]]; then . "$variables" && break; fi
done

if (($# > 0)); then
  # The lock is for the timeout of a step alone: daemons would inherit it, and keep it.
  exec 9>&-
  trap 'report_failure $? "$BASH_COMMAND" $LINENO' ERR
  "$@"
  exit
fi

mkdir -p "$state" "$root/run" "$(dirname "$log")"
exec 9>"$root/run/zoned-bootstrap.lock"
flock 9
# Not before: the run that had the lock has taken its own away, unless it was killed.
rm -rf "$run"
mkdir --mode 0700 "$run"
# However it ends, nothing is left of the keys that came with it: another run brings them again.
end() {
  local code=$?
  # Of a machine that has not been touched pods may come again.
  if ((code != 0)) && [[ -e $state/joined ]] && ! is_touched && is_drained; then
    { "$BASH" "$0" undo_drain && "$BASH" "$0" end_turn update; } >>"$log" 2>&1 || true
  fi
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
if has_other_proxy; then step "proxy" 300 1 set_proxy; fi
step "kernel modules" 60 1 load_modules
# A kubelet that is to use it does not start without.
! has_task registries || step "credential provider" 900 3 install_credential_provider
if has_task registry-credentials || [[ -e $credentials_kept ]]; then
  step "registry credentials" 60 1 keep_registry_credentials
fi

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
  # kubeadm is content with a majority of etcd, and would take the next member from it. One that an
  # upgrade has left half done is put right whatever the others are.
  [[ $role == worker ]] || ! control_plane_is_well >>"$log" 2>&1 || step "other control planes" 600 0 await_peers
  # From here on it is half of each until all has ended well, also where the change is taken back.
  rm -f "$state/configuration"
  step "packages" 1800 3 upgrade_kubeadm
  has_version kubelet || ! has_task snapshots || step "snapshot" 1200 1 save_snapshot
  step "turn" $(($(patience) + 60)) 0 await_turn
  if ! has_version kubelet || has_other_room; then step "drain" $((drain_minutes * 60 + 1800)) 0 drain; fi
  step "kubeadm upgrade" 1800 1 upgrade_member
  step "kubelet" 900 2 upgrade_kubelet
  [[ $role == worker ]] || step "static pods" 900 0 await_static_pods
fi

[[ $role == worker ]] || step "control plane" 900 0 await_control_plane
if [[ -e $renamed ]]; then step "pods on the host's network" 300 3 restart_host_pods; fi
if has_task snapshots || [[ -e $snapshot_units.timer ]]; then step "snapshots" 60 1 schedule_snapshots; fi
# Before there is a pod network, the initial control plane cannot be Ready.
if [[ $(<"$state/joined") == joined ]] || has_pod_network; then
  step "node" 1500 0 await_node
fi
if is_drained; then step "uncordon" 120 5 undo_drain; fi
# The next machine begins when this step ends. A change that touches no machine waits for none.
if [[ $role == control-plane ]] && is_touched; then
  step "other control planes" 600 0 await_peers
fi
keep_itself
[[ $role == worker ]] || step "certificates" 120 2 keep_certificates
! has_task restart-pods || step "pods" 600 2 restart_pods
! has_task rewrite-secrets || step "encryption" 1800 5 rewrite_secrets
step "secrets" 300 1 finish
note "$machine is a member of the cluster"
exit
#--- payload ---
