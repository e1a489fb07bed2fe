# shellcheck shell=bash
# First boot, kernel modules and packages.

first_boot_again() {
  say "first boot has not ended well ($1), so this step runs it"
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
    # A reboot in its midst ends it for good, and behind a proxy with a login nobody else begins it.
    if [[ $boot =~ status:\ (done|error|degraded|disabled) ]]; then
      first_boot_again "interrupted, or not begun"
    else
      sleep 5
    fi
  done
}

# Another one than that by which this machine has reached the internet.
has_other_proxy() {
  [[ $(cat "$root"/etc/zoned/proxy{.env,-ca.crt}) != "$(cat "$state/proxy")" ]]
} 2>/dev/null

set_proxy() { first_boot set_proxy; }

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
  local begun=$state/version-begun
  [[ ! -e $begun ]] && has_version kubeadm && has_version kubelet && return
  touch "$begun"
  first_boot add_package_source
  first_boot install_kubernetes
  expect_version kubeadm
  expect_version kubelet
  first_boot pull_images
  # Last: a try that has ended before is begun anew.
  rm "$begun"
}

install_credential_provider() { first_boot install_credential_provider; }

# first_boot FUNCTION: a part of the first boot, with the settings of now
first_boot() { "$root/opt/zoned/first-boot.sh" "$1"; }
