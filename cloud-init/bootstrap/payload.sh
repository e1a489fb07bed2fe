# shellcheck shell=bash
# The payload: what it says, and where its files go.

# has_task NAME: whether the step does this besides; see Task in components/machine/payload.ts.
has_task() { [[ " ${tasks[*]} " == *" $1 "* ]]; }

# payload files: keys and configuration, each where it belongs, and what the steps need, as shell assignments.
# payload settings: the same without the keys, which a member has.
# payload authorities: the CAs alone, for a member that takes other ones.
# payload service-accounts: the keys of service accounts alone.
payload() {
  python3 - "$0" "$1" "$run/variables" "$root" "$patches" "$reserved" <<'END'
import glob, json, os, shlex, sys
script, what, variables, root, patches, reserved = sys.argv[1:]
os.umask(0o077)
text = open(script, encoding="utf-8").read().split("\n#--- payload ---\n", 1)[1]
if not text.strip():
    sys.exit("the payload is gone, since this script has done its work: run `pulumi up` for more")
payload = json.loads(text)
if what in ("files", "settings"):
    names = {"machine": "machine", "role": "role", "initial_control_plane": "initialControlPlane", "api_name": "apiName",
             "api_port": "apiPort", "api_address": "apiAddress", "version": "kubernetesVersion",
             "configuration": "configuration", "cluster": "clusterConfiguration",
             "drain_minutes": "drainMinutes", "address": "nodeAddress", "restored_from": "restoredFrom",
             "max_pods": "maxPods", "room": "room"}
    with open(variables, "w") as file:
        for name, key in names.items():
            file.write(f"{name}={shlex.quote(str(payload.get(key, '')))}\n")
        file.write(f"modules=({shlex.join(payload['modules'])})\n")
        file.write(f"awaits_ready={'yes' if payload.get('awaitsReady', True) else ''}\n")
        file.write(f"is_api_private={'yes' if payload.get('isApiPrivate') else ''}\n")
        file.write(f"is_ephemeral={'yes' if payload.get('isEphemeral') else ''}\n")
        file.write(f"tasks=({shlex.join(payload['tasks'])})\n")
    # kubeadm applies every patch that it finds there. One is the machine's own: see reservations.sh.
    for patch in glob.glob(patches + "/*"):
        if patch != reserved:
            os.remove(patch)
def is_wanted(path):
    is_key = path.startswith("/etc/kubernetes/")
    is_of_accounts = path.startswith("/etc/kubernetes/pki/sa.")
    return {"files": True, "settings": not is_key, "authorities": is_key and not is_of_accounts,
            "service-accounts": is_of_accounts}[what]
# An operator has had the machine forget all keys but the one that signs, since others know them: docs/day-2.md.
def has_forgotten(path, content):
    first, end, _ = content.partition("-----END PUBLIC KEY-----\n")
    return "forget-account-keys" in payload["tasks"] and os.path.exists(path) and open(path).read() == first + end
for entry in payload["files"]:
    path = root + entry["path"]
    if not is_wanted(entry["path"]) or what == "service-accounts" and has_forgotten(path, entry["content"]):
        continue
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), int(entry["mode"], 8))
        file.write(entry["content"])
    os.replace(path + ".new", path)
# An empty one has containerd ask no mirror for a registry: only the payload brings such.
brought = {root + entry["path"] for entry in payload["files"]}
for hosts in glob.glob(root + "/etc/containerd/certs.d/*/hosts.toml"):
    if hosts not in brought and os.path.getsize(hosts) == 0:
        os.remove(hosts)
END
}

read_payload() {
  if [[ -e $state/joined ]]; then
    payload settings
    return
  fi
  # As first boot makes it: for everybody to look into, unlike the folders of what is secret.
  mkdir -p "$root/etc/kubernetes"
  payload files
}

credentials_kept=$state/registry-credentials

# Those that the payload has never brought are somebody else's.
keep_registry_credentials() {
  if has_task registry-credentials; then
    touch "$credentials_kept"
    return
  fi
  rm -f "$root/var/lib/kubelet/config.json" "$credentials_kept"
}

# In its place: a full disk has no room for another file, and what runs reads no further.
forget_payload() { truncate --size="$(sed '/^#--- payload ---$/q' "$0" | wc --bytes)" "$0"; }

forget_secrets() {
  rm -f "$discovery" "$init_config" "$join_config" "$kubelet_config" "$upgrade_config" "$root/etc/zoned/kubeadm-reset.yaml"
  forget_payload
}
