#!/usr/bin/env bash
# Makes of a machine whose first boot has ended what a gallery image is taken of. It writes what the image has to
# standard output and into the image, and ends before the machine forgets who it is: Azure's agent, which reports
# that this has ended, is among what does.
#
# The machine is off when that is done. One that stays on could not be generalized; its console says why.
set -Eeuo pipefail
umask 022

# Empty on a machine; tests put a folder of their own here.
root=${ZONED_ROOT:-}
state=$root/var/lib/zoned
log=$root/var/log/zoned.log
first_boot=$root/opt/zoned/first-boot.sh

# Until Azure knows how this has ended.
seconds=60
longest=3600

say() { TZ=UTC0 printf '%(%Y-%m-%dT%H:%M:%SZ)T generalize: %s\n' -1 "$*"; }

# One that has failed is begun again: it was asked for once more.
finish_first_boot() {
  while [[ ! -e $state/first-boot.done && ! -e $state/first-boot.failed ]] && ((SECONDS < longest)); do sleep 5; done
  [[ -e $state/first-boot.done ]] || "$first_boot" >/dev/null || {
    tail --lines 40 "$log" >&2
    say "first boot failed: $(cat "$state/first-boot.failed")" >&2
    return 1
  }
}

# fetch FUNCTION: what an image has beyond a first boot. Azure ends the step after 90 minutes, and would not say why.
fetch() {
  local tries=4
  until timeout --kill-after=15 900 "$first_boot" "$1" >>"$log" 2>&1; do
    ((--tries > 0)) || {
      tail --lines 40 "$log" >&2
      say "$1 failed" >&2
      return 1
    }
    sleep 20
  done
}

# What is one machine's alone: keys, names, leases, logs, the account of its administrator, and the proxy's
# password where there is one.
forget() {
  local ovf=$root/var/lib/waagent/ovf-env.xml account
  trap 'say "exit code $? of: $BASH_COMMAND" >&2' ERR
  systemctl stop kubelet.service
  rm -rf "$root"/var/lib/kubelet/{pki,config.yaml,kubeadm-flags.env} "$root"/etc/kubernetes/{*.conf,pki}
  if [[ -e $state/proxy ]]; then
    : >"$root/etc/zoned/proxy.env"
    : >"$root/etc/zoned/proxy-ca.crt"
    "$first_boot" set_proxy
  fi
  rm -rf "$root"/etc/zoned/{first-boot.env,add-on-images,proxy.env,proxy-ca.crt} "$state"
  cloud-init clean --logs
  # Debian's own images have no agent.
  if command -v waagent >/dev/null; then
    account=$(grep --only-matching --perl-regexp '<([^/>]*:)?UserName[^>]*>\K[^<]+' "$ovf")
    waagent -deprovision+user -force
    # It ends well, whatever has failed of it.
    if [[ -e $ovf ]] || getent passwd "$account" >/dev/null; then
      say "waagent has left $ovf or the account $account" >&2
      exit 1
    fi
  fi
  rm -f "$root"/etc/ssh/ssh_host_* "$root/var/lib/dbus/machine-id" "$root/root/.bash_history"
  # Empty and not missing: systemd would take the next boot for the first one of the system and switch on what was
  # switched off.
  : >"$root/etc/machine-id"
  rm -f "$log"
  sync
  systemctl poweroff
}

finish_first_boot
fetch install_disk_rules
fetch pull_add_on_images
"$first_boot" image_contents >"$root/opt/zoned/image"
cat "$root/opt/zoned/image"
systemd-run --quiet --collect --unit zoned-generalize --on-active "$seconds" --property StandardError=journal+console \
  "$BASH" -c "$(declare -f say forget); set -Eeuo pipefail; root='$root' state='$state' log='$log' first_boot='$first_boot'; forget"
