#!/usr/bin/env bash
# Renews, before they end, the certificates that kubeadm has signed on a control plane for a year: all of
# /etc/kubernetes/pki but the CAs, and those inside of its kubeconfigs. zoned-certificates.timer runs it every
# hour of one day a week, on each control plane on a day of its own, so that no two restart at once.
#
# It may be run at any time, and again: without need it only says on the Node until when they are valid.
set -Eeuo pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
umask 077

# Empty on a machine; tests put a folder of their own here.
root=${ZONED_ROOT:-}
state=$root/var/lib/zoned
manifests=$root/etc/kubernetes/manifests

# As long as a renewal is under way: when it began.
begun=$state/certificates-renewal
least_days=60
# In the order in which they need each other.
components=(etcd kube-apiserver kube-controller-manager kube-scheduler)
limit=${ZONED_LIMIT:-300}
mark=zoned/certificates-renewed

# What the bootstrap step of this machine knows of it, and how it asks others.
machine=
# shellcheck source=/dev/null
. "$state/variables"
bootstrap() { "$BASH" "$root/opt/zoned/bootstrap.sh" "$@"; }

# Of the certificate that ends first.
valid_until() {
  kubeadm certs check-expiration --output json |
    jq --raw-output '[.certificates[] | select(.missing | not) | .expirationDate] | min'
}

report() {
  local until
  until=$(valid_until)
  bootstrap annotate zoned/certificates-valid-until "\"$until\""
  echo "the certificates of $machine are valid until $until"
}

# The unit fails, and the reason is in the API.
fail() {
  echo "$*" >&2
  ((BASH_SUBSHELL == 0)) || exit 1
  trap - ERR
  bootstrap annotate zoned/certificates-renewal-failed "$(jq --null-input --arg why "$*" \
    '"\(now | todate): \($why)"')" || true
  exit 1
}

unexpected() { fail "exit code $1 of: ${2%%$'\n'*} (line $3), see journalctl --unit zoned-certificates"; }

is_due() {
  local until
  until=$(valid_until)
  until=$(date --date "$until" +%s)
  due=$((until - EPOCHSECONDS < least_days * 86400))
}

# Only one machine may be down: Azure's events, kured and updates note it in the same place.
take_turn() {
  local why
  [[ ! -e $state/maintenance ]] || fail "not renewing certificates, since an event of Azure or a reboot of $machine is under way"
  why=$(bootstrap take_turn renewal 30 2>&1) || fail "not renewing certificates: ${why%%$'\n'*}"
}

expect_peers() {
  local amiss
  amiss=$(bootstrap peers_amiss 2>&1) || true
  [[ -z $amiss ]] || fail "not $1, since another control plane is not well: ${amiss//$'\n'/; }"
}

# The kubelet starts a static pod anew when its manifest changes, and reads no file that begins with a dot.
mark_manifest() {
  local manifest=$manifests/$1.yaml line="    $mark: \"$stamp\""
  sed --regexp-extended "\\|^    $mark: |d
    /^metadata:\$/ {
      n
      s|^  annotations:\$|&\\n$line|
      t
      s|^|  annotations:\\n$line\\n|
    }" "$manifest" >"$manifests/.$1.new"
  grep --quiet --line-regexp --fixed-strings "$line" "$manifests/.$1.new"
  mv "$manifests/.$1.new" "$manifest"
}

has_restarted() {
  bootstrap kubelet_pods |
    jq --exit-status --arg name "$1-$machine" --arg mark "$mark" --arg stamp "$stamp" '
      any(.items[]; .metadata.name == $name and .metadata.annotations[$mark] == $stamp
        and any(.status.conditions[]?; .type == "Ready" and .status == "True"))'
}

is_well() { has_restarted "$1" && bootstrap control_plane_is_well; }

restart() {
  local until=$((SECONDS + limit))
  expect_peers "restarting $1"
  mark_manifest "$1"
  until is_well "$1" >/dev/null 2>&1; do
    ((SECONDS < until)) || fail "$1 has new certificates and is not well $limit s after its restart"
    sleep 5
  done
  echo "$1: restarted"
}

renew() {
  local component due
  is_due
  if [[ ! -e $begun ]]; then
    ((due)) || return 0
    bootstrap control_plane_is_well >/dev/null 2>&1 ||
      fail "not renewing certificates, since this control plane is not well"
  fi
  # Also to go on with an earlier try, whose turn has ended by itself.
  expect_peers "renewing certificates"
  take_turn
  [[ -e $begun ]] || date --utc +%FT%TZ >"$begun"
  stamp=$(<"$begun")
  # Else an earlier try got this far.
  if ((due)); then kubeadm certs renew all; fi
  for component in "${components[@]}"; do restart "$component"; done
  rm "$begun"
  bootstrap end_turn other || echo "its turn to be down ends by itself"
}

if (($# > 0)); then
  "$1"
  exit
fi

trap 'unexpected $? "$BASH_COMMAND" $LINENO' ERR
# A bootstrap step configures the same programs.
exec 9>"$root/run/zoned-bootstrap.lock"
flock 9
renew
report
bootstrap annotate zoned/certificates-renewal-failed null
