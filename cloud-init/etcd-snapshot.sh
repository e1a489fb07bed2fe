#!/usr/bin/env bash
# Snapshots of etcd on one control plane, as root:
#   etcd-snapshot.sh save            by the timer; only the member that leads etcd does something
#   etcd-snapshot.sh save any        by the bootstrap step, before it changes the member
#   etcd-snapshot.sh fetch NAME FILE by the bootstrap step that restores; NAME may be `latest`
#   etcd-snapshot.sh etcdutl FILE    takes this program out of etcd's image, where no etcd runs
#
# Its settings are in etcd-snapshot.env beside it. With CONTAINER, snapshots are blobs there; without, files in
# a folder of this machine, which is lost with it. On failure the last line says why, and the way on.
set -Eeuo pipefail
umask 077
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# Empty on a machine; tests put a folder of their own here.
root=${ZONED_ROOT:-}
# shellcheck source=/dev/null
. "$root/opt/zoned/etcd-snapshot.env"
# shellcheck source=/dev/null
. "$root/etc/zoned/first-boot.env"
if [[ -s $root/etc/zoned/proxy.env ]]; then
  set -a
  # shellcheck source=/dev/null
  . "$root/etc/zoned/proxy.env"
  set +a
fi
: "$CLUSTER_NAME" "$CONTAINER" "$CLIENT_ID" "$EVERY" "$ORIGIN" "$KUBERNETES_VERSION"

pki=$root/etc/kubernetes/pki
folder=$root/var/lib/zoned/snapshots
# Where etcd's container can write. Nothing but etcd's own folders there is of interest to it.
draft=var/lib/etcd/zoned-snapshot.db
work=$root/run/zoned-etcd-snapshot
answer=$work/answer
block_bytes=$((32 * 1024 * 1024))
# In the folder: it is on the disk that etcd needs. With a container, only what could not be uploaded is there.
keep=5
[[ -z $CONTAINER ]] || keep=1

say() { TZ=UTC0 printf '%(%Y-%m-%dT%H:%M:%SZ)T %s\n' -1 "$*" >&2; }

# fail WORDS...: the last line of the output
fail() {
  echo "$*" >&2
  exit 1
}

ask_etcd() {
  curl --silent --show-error --fail --connect-timeout 5 --max-time 30 --noproxy '*' \
    --cacert "$pki/etcd/ca.crt" --cert "$pki/etcd/healthcheck-client.crt" \
    --key "$pki/etcd/healthcheck-client.key" "https://127.0.0.1:2379$1" --data '{}'
}

# in_etcd COMMAND...: where its image and its certificates are; it has no shell. An application may run an etcd
# of its own here.
in_etcd() {
  local container
  container=$(crictl ps --state Running --name '^etcd$' --label io.kubernetes.pod.namespace=kube-system --quiet |
    head --lines=1)
  [[ -n $container ]] || fail "no container of etcd runs on this machine"
  crictl exec --sync --timeout 900 "$container" "$@"
}

# etcd ends a snapshot with the SHA-256 of what comes before.
is_whole() {
  [[ $(head --bytes=-32 "$1" | sha256sum | cut --characters=-64) == \
    "$(tail --bytes=32 "$1" | od --address-radix=n --format=x1 --output-duplicates | tr -d ' \n')" ]]
}

# Tokens live in files of root's for the run: arguments of a process are everybody's to read.
authorize() {
  if [[ -n ${ISSUER:-} ]]; then log_in; else ask_metadata; fi
  jq --raw-output '"Authorization: Bearer \(.access_token)"' "$work/token" >"$work/authorization"
}

# While it is updated, for up to 70 seconds, the metadata service answers 410 or 404.
ask_metadata() {
  local query="api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F&client_id=$CLIENT_ID"
  curl --silent --show-error --fail --max-time 10 --retry 7 --retry-all-errors --noproxy '*' --header Metadata:true \
    "http://169.254.169.254/metadata/identity/oauth2/token?$query" >"$work/token" ||
    fail "this machine gets no token for Azure storage from the metadata service: look at its identity (az vm identity show)"
}

# As the service account SUBJECT, for a machine that has no identity.
log_in() {
  local code
  sign_token >"$work/assertion"
  code=$(curl --silent --show-error --max-time 30 --connect-timeout 10 --retry 5 --output "$work/token" \
    --write-out '%{http_code}' --data grant_type=client_credentials --data "client_id=$CLIENT_ID" \
    --data-urlencode scope=https://storage.azure.com/.default --data-urlencode "client_assertion@$work/assertion" \
    --data-urlencode client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer "$LOGIN") ||
    fail "$LOGIN does not answer: look at the way out (proxy, firewall)"
  [[ $code == 200 ]] ||
    fail "Entra ID does not take $SUBJECT for the cluster's identity ($code): look at its federated credentials, which take" \
      "minutes to take effect. $(jq --raw-output '.error_description // empty' "$work/token" | head --lines=1)"
}

# A token of it, as an API server signs one: where etcd is restored there is none.
sign_token() {
  local key=$pki/sa.key kid text signature
  kid=$(openssl pkey -in "$key" -pubout -outform DER | openssl dgst -sha256 -binary | base64url)
  text=$(jq --null-input --compact-output --arg kid "$kid" '{alg: "RS256", typ: "JWT", $kid}' | base64url)
  text+=.$(jq --null-input --compact-output --arg iss "$ISSUER" --arg sub "$SUBJECT" --arg aud "$AUDIENCE" \
    '(now | floor) as $now | {$iss, $sub, aud: [$aud], iat: $now, nbf: $now, exp: ($now + 600)}' | base64url)
  signature=$(printf %s "$text" | openssl dgst -sha256 -sign "$key" -binary | base64url)
  printf %s "$text.$signature"
}

base64url() { base64 --wrap=0 | tr '+/' '-_' | tr --delete '='; }

# storage METHOD PATH [CURL'S OPTION...]: what it answers is in the files $answer and `headers`. Returns 4
# where there is no such thing.
storage() {
  local code method=$1 path=$2
  code=$(curl --silent --show-error --max-time 1200 --connect-timeout 10 --retry 3 --request "$method" \
    --header "@$work/authorization" --header 'x-ms-version: 2024-11-04' --output "$answer" \
    --dump-header "$work/headers" --write-out '%{http_code}' "${@:3}" "$CONTAINER$path") ||
    fail "$CONTAINER does not answer: look at its name, and at the account's network rules and private endpoints"
  case $code in
    2??) ;;
    404) return 4 ;;
    401 | 403)
      fail "$CONTAINER refuses this machine's identity ($code): it needs the role Storage Blob Data Contributor" \
        "on the container, which takes minutes to take effect, and the account's network rules must admit it"
      ;;
    *) fail "$CONTAINER answers $method with $code: $(head --bytes=300 "$answer" | tr '\r\n' '  ')" ;;
  esac
}

header() { sed --quiet --regexp-extended "s/^$1: *([^\r]*)\r?$/\1/Ip" "$work/headers" | tail --lines=1; }

no_container() { fail "there is no container $CONTAINER: make it, or name another (zoned:etcdBackups)"; }

# Before an upgrade KUBERNETES_VERSION is that of the next one.
running_version() {
  local found
  found=$(sed --quiet --regexp-extended 's|^ *(- )?image: .*/kube-apiserver:v([^@" ]+).*|\2|p' \
    "$root/etc/kubernetes/manifests/kube-apiserver.yaml" 2>/dev/null) || true
  echo "${found:-$KUBERNETES_VERSION}"
}

# upload FILE NAME: in blocks, since one request carries no more than 5,000 MiB.
upload() {
  local file=$1 path=/$CLUSTER_NAME/$2 etcd=$3 bytes count=0 id list=''
  bytes=$(stat --format %s "$file")
  authorize
  while ((count * block_bytes < bytes)); do
    dd if="$file" of="$work/block" bs="$block_bytes" skip="$count" count=1 status=none
    id=$(printf %06d "$count" | base64)
    storage PUT "$path?comp=block&blockid=$id" --upload-file "$work/block" || no_container
    list+="<Latest>$id</Latest>"
    count=$((count + 1))
  done
  rm -f "$work/block"
  storage PUT "$path?comp=blocklist" --data-binary "<BlockList>$list</BlockList>" \
    --header 'Content-Type: application/xml' --header "x-ms-meta-cluster: $ORIGIN" \
    --header "x-ms-meta-kubernetes: $(running_version)" --header "x-ms-meta-etcd: $etcd" \
    --header "x-ms-meta-machine: $(uname -n)" || no_container
}

# Names of this cluster's snapshots, the oldest first.
list() {
  local marker=''
  while :; do
    storage GET "?restype=container&comp=list&prefix=$CLUSTER_NAME%2F&marker=$marker" || no_container
    python3 - "$answer" "$work/marker" <<'PYTHON'
import re, sys, urllib.parse, xml.etree.ElementTree
answer = xml.etree.ElementTree.parse(sys.argv[1])
for name in answer.iterfind("Blobs/Blob/Name"):
    last = name.text.split("/", 1)[1]
    if re.fullmatch(r"\d{8}T\d{6}Z-\d+\.db", last):
        print(last)
with open(sys.argv[2], "w") as file:
    file.write(urllib.parse.quote(answer.findtext("NextMarker") or "", safe=""))
PYTHON
    marker=$(<"$work/marker")
    [[ -n $marker ]] || break
  done | sort
}

minor_of() { cut --delimiter=. --fields=-2 <<<"$1"; }

# is_newer_minor VERSION THAN
is_newer_minor() {
  [[ $(minor_of "$1") != "$(minor_of "$2")" &&
    $(printf '%s\n' "$(minor_of "$1")" "$(minor_of "$2")" | sort --version-sort | tail --lines=1) != "$(minor_of "$2")" ]]
}

# As first boot has pulled it.
etcd_image() { kubeadm config images list --config "$root/etc/zoned/kubeadm-images.yaml" | grep /etcd:; }

# A snapshot of another cluster would be restored without a word, and nobody could read a Secret in it.
check_origin() {
  local name=$1 cluster kubernetes etcd own
  cluster=$(header x-ms-meta-cluster)
  kubernetes=$(header x-ms-meta-kubernetes)
  etcd=$(header x-ms-meta-etcd)
  if [[ -n $cluster && $cluster != "$ORIGIN" ]]; then
    fail "snapshot $name is of another cluster named $CLUSTER_NAME, one whose Secrets are encrypted by other keys:" \
      "name one of this stack's own (pulumi config set restoreFrom), or use the state of the stack that it is of"
  fi
  if [[ -n $kubernetes ]] && is_newer_minor "$kubernetes" "$KUBERNETES_VERSION"; then
    fail "snapshot $name is of Kubernetes $kubernetes, newer than this cluster's $KUBERNETES_VERSION, which cannot read it:" \
      "pulumi config set kubernetesVersion $kubernetes, or name an older snapshot (pulumi config set restoreFrom)"
  fi
  own=$(etcd_image)
  if [[ -n $etcd ]] && is_newer_minor "$etcd" "${own##*:}"; then
    fail "snapshot $name is of etcd $etcd, newer than the ${own##*:} of this cluster's Kubernetes $KUBERNETES_VERSION, which cannot" \
      "read it: set kubernetesVersion to what the cluster ran then, or name an older snapshot (pulumi config set restoreFrom)"
  fi
}

fetch() {
  local name=$1 file=$2 all
  [[ -n $CONTAINER ]] || fail "there is no container to restore from (zoned:etcdBackups)"
  authorize
  if [[ $name == latest ]]; then
    all=$(list)
    name=$(tail --lines=1 <<<"$all")
    [[ -n $name ]] || fail "there is no snapshot of cluster $CLUSTER_NAME in $CONTAINER: look for its blobs" \
      "($CLUSTER_NAME/<time>-<revision>.db), or initialize a new, empty cluster (pulumi config set reinitialize)"
  fi
  say "fetching snapshot $name"
  # Not in memory, as /run is.
  answer=$file storage GET "/$CLUSTER_NAME/$name" || {
    rm -f "$file"
    all=$(list | tail --lines=5 | paste --serial --delimiters ' ')
    fail "there is no snapshot $CLUSTER_NAME/$name in $CONTAINER; the newest are: ${all:-none}." \
      "Name one of them: pulumi config set restoreFrom"
  }
  check_origin "$name"
  is_whole "$file" ||
    fail "snapshot $name is damaged or not whole ($(stat --format %s "$file") bytes): name an older one" \
      "(pulumi config set restoreFrom)"
}

# What runs no etcd takes the program from where etcd would come from.
unpack_etcdutl() {
  local image container
  image=$(etcd_image)
  if [[ $CONTAINER_RUNTIME == cri-dockerd ]]; then
    # Its image names no program, and Docker creates nothing without one; it is not started.
    container=$(docker create "$image" etcdutl)
    docker cp "$container:/usr/local/bin/etcdutl" "$1"
    docker rm "$container"
    return
  fi
  mkdir "$work/image"
  ctr --namespace k8s.io images mount "$image" "$work/image"
  cp "$work/image/usr/local/bin/etcdutl" "$1" || say "$image has no etcdutl"
  ctr --namespace k8s.io images unmount --rm "$work/image"
  [[ -x $1 ]]
}

# What the doctor reads: the last good one, and what has failed since.
say_saved() {
  local where=$CONTAINER
  [[ -n $where ]] || where="folder /var/lib/zoned/snapshots on $(uname -n)"
  apply_report result "$(jq --null-input --arg where "$where" --arg machine "$(uname -n)" --arg name "$1" \
    --arg bytes "$2" --arg revision "$3" --arg etcd "$4" --arg every "$EVERY" \
    '{$where, $machine, $name, $bytes, $revision, $etcd, $every, time: (now | todate)}')"
  apply_report failure '{}'
}

say_failed() {
  apply_report failure "$(jq --null-input --arg error "$(uname -n): $1" '{$error, failed: (now | todate)}')"
}

# apply_report PART DATA: each part has fields of its own in the one object, and one that is left out goes.
apply_report() {
  jq --null-input --argjson data "$2" '{apiVersion: "v1", kind: "ConfigMap", $data,
    metadata: {name: "zoned-etcd-snapshot", namespace: "kube-system"}}' |
    kubectl --kubeconfig "$root/etc/kubernetes/admin.conf" --request-timeout 30s apply --server-side \
      --force-conflicts --field-manager "zoned-etcd-snapshot-$1" --filename - >/dev/null || true
}

leads() { jq --exit-status '.leader == .header.member_id' <<<"$1" >/dev/null; }

take() {
  local status revision name bytes etcd
  etcd=$(ask_etcd /v3/maintenance/status | jq --raw-output .version)
  in_etcd etcdctl --endpoints https://127.0.0.1:2379 --cacert /etc/kubernetes/pki/etcd/ca.crt \
    --cert /etc/kubernetes/pki/etcd/healthcheck-client.crt --key /etc/kubernetes/pki/etcd/healthcheck-client.key \
    --command-timeout 10m snapshot save "/$draft" >&2
  status=$(in_etcd etcdutl --write-out json snapshot status "/$draft") ||
    fail "etcdutl does not find the snapshot to be whole: look at etcd's disk"
  is_whole "$root/$draft" || fail "the snapshot is not whole, though etcdctl said so: look at etcd's disk"
  # crictl prints what a command says on its standard error after the rest.
  revision=$(grep --max-count 1 '"revision"' <<<"$status" | jq --raw-output .revision)
  bytes=$(stat --format %s "$root/$draft")
  name=$(date --utc +%Y%m%dT%H%M%SZ)-$revision.db
  mkdir -p "$folder"
  mv "$root/$draft" "$folder/$name"
  if [[ -n $CONTAINER ]]; then
    upload "$folder/$name" "$name" "$etcd"
    rm "$folder"/*.db
  fi
  say_saved "$name" "$bytes" "$revision" "$etcd"
  say "saved $name, $bytes bytes"
}

# The oldest go.
tidy() {
  mkdir -p "$folder"
  find "$folder" -name '*.db' | sort | head --lines=-"$keep" | xargs --no-run-if-empty rm -f
}

save() {
  local state
  state=$(ask_etcd /v3/maintenance/status) || fail "etcd of this machine does not answer"
  if [[ ${1:-} != any ]] && ! leads "$state"; then
    say "another member leads etcd, and saves"
    return
  fi
  # In a process of its own, so that its first failure ends it.
  if ! "$BASH" "$0" take 2>"$work/said"; then
    tidy
    say_failed "$(tail --lines=1 "$work/said")"
    # Last, whatever kubectl has to say.
    cat "$work/said" >&2
    exit 1
  fi
  cat "$work/said" >&2
  tidy
}

command=${1:-save}
if [[ $command == take ]]; then
  take
  exit
fi
mkdir -p "$root/run"
exec 9>"$work.lock"
flock 9
clean() {
  rm -rf "$work"
  # etcdctl writes a .part first.
  rm -f "$root/$draft"{,.part}
}
# Not before: the run that had the lock has taken its own away, unless it was killed.
clean
mkdir -p "$work"
trap clean EXIT
case $command in
  save) save "${2:-}" ;;
  fetch) fetch "$2" "$3" ;;
  etcdutl) unpack_etcdutl "$2" ;;
  *) fail "what is $command? expected save, fetch or etcdutl" ;;
esac
