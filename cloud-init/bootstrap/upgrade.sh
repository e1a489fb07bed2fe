# shellcheck shell=bash
# What makes a member what its payload says.

# A member is what the last run that ended well made of it.
is_outdated() { [[ $(cat "$state/configuration" 2>/dev/null) != "$configuration" ]] || has_other_reservation; }

# kubeadm leaves an etcd as it is that is newer than its own, and ends well (performEtcdStaticPodUpgrade in
# cmd/kubeadm/app/phases/upgrade/staticpods.go). Of its semantic versions, one with -0 comes before the same without.
expect_etcd() {
  local own wanted newest manifest=$root/etc/kubernetes/manifests/etcd.yaml
  [[ -e $manifest ]] || return 0
  own=$(sed --quiet --regexp-extended 's|^ *(- )?image: [^@]*:v?([^@" ]+).*|\2|p' "$manifest" | head --lines=1)
  wanted=$(kubeadm config images list --config "$init_config" | sed --quiet 's|.*/etcd:||p')
  newest=$(printf '%s\n' "$own" "$wanted" | tr - '~' | sort --version-sort | tail --lines=1 | tr '~' -)
  [[ $newest != "$wanted" ]] || return 0
  reason "etcd of this machine is $own, newer than the $wanted of Kubernetes $version, and kubeadm leaves such a one as it is:" \
    "no flag, certificate or CA would reach it. So the machine was not touched. Go on with the upgrade that brought it" \
    "(pulumi config set kubernetesVersion), or, where a patch did, put its image back in /etc/kubernetes/manifests/etcd.yaml;" \
    "then run \`pulumi up\` again"
  return 1
}

upgrade_kubeadm() {
  if ! has_version kubeadm; then
    first_boot add_package_source
    first_boot install_kubeadm
    expect_version kubeadm
  fi
  expect_etcd
  # Ahead of the drain, also when an earlier try ended between the two.
  has_version kubelet || first_boot pull_images
}

# Whether its kubelet has reported within the last minute; it does every ten seconds.
kubelet_speaks() {
  local begun=$((EPOCHSECONDS - 60))
  node_is_well >/dev/null
}

# kubeadm upgrades no control plane whose Node is not Ready (phases/upgrade/health.go), and waits until a kubelet has
# started static pods anew. One that does not run with what an earlier update gave it gets what this one gives it.
revive_kubelet() {
  local tries=60
  has_version kubelet && api_answers && ! kubelet_speaks || return 0
  say "the kubelet does not report, and is configured first"
  kubeadm init phase kubelet-start --config "$kubelet_config"
  until kubelet_speaks || ((tries-- == 0)); do sleep 5; done
}

upgrade_control_plane() {
  # A certificate that has all names is left as it is, and the API server reads another one by itself.
  kubeadm init phase certs apiserver --config "$init_config" || {
    rm -f "$pki"/apiserver.{crt,key}
    kubeadm init phase certs apiserver --config "$init_config"
  }
  # Else each try needs as much of the disk, and etcd ends where that is full.
  ! control_plane_is_well || forget_copies
  if has_settings "$admin"; then
    kubeadm upgrade node --config "$upgrade_config"
    return
  fi
  give_settings "$admin"
  kubeadm upgrade apply --yes --config "$upgrade_config"
  ! has_task cas || publish_authorities
  note_settings "$admin"
}

upgrade_member() {
  # Its turn is noted anew, since a drain has used most of that up.
  await_turn
  touch "$state/touched"
  if trusts_several; then tasks+=(cas); fi
  ! has_task cas || take_authorities
  if [[ $role == control-plane ]]; then
    # What runs has read them when it started, and starts anew where they are other ones.
    payload service-accounts
    revive_kubelet
    upgrade_control_plane
  else
    reserve_resources
    kubeadm upgrade node --config "$upgrade_config"
  fi
  has_task cas || return 0
  trust_authorities "$root"/etc/kubernetes/*.conf
  [[ $role == worker ]] || publish_client_authorities
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

# Before each try of an upgrade kubeadm copies etcd's data, and it keeps every copy: on a disk that is not
# for that (cmd/kubeadm/app/phases/upgrade/staticpods.go). Once the member is well they are not needed.
forget_copies() { rm -rf "$root"/etc/kubernetes/tmp/kubeadm-*; }

finish() {
  first_boot remove_package_source
  settle
  end_turn update || say "its turn to be down ends by itself"
  watch_events
  forget_copies
  forget_secrets
}
