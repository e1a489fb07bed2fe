# shellcheck shell=bash
# Certificates, CAs and keys that change in a living cluster.

# Of several CAs the first one signs. kubeadm reads no other (TryLoadCertFromDisk in
# cmd/kubeadm/app/util/pkiutil), and has the kubeconfigs that it writes trust that one alone.
trust_authorities() {
  local data
  data=$(base64 --wrap=0 "$pki/ca.crt")
  sed --in-place "s|\(certificate-authority-data:\) .*|\1 $data|" "$@"
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

# Where aggregated APIs read whom they verify clients and API servers by. API servers add their CAs there and take none
# away (combineCertLists in pkg/controlplane/controller/clusterauthenticationtrust), so that each control plane does.
publish_client_authorities() {
  local data
  data=$(jq --null-input '{data: {"client-ca-file": $clients, "requestheader-client-ca-file": $proxies}}' \
    --rawfile clients "$pki/ca.crt" --rawfile proxies "$pki/front-proxy-ca.crt")
  kubectl --kubeconfig "$admin" --request-timeout 30s --namespace kube-system \
    patch configmap extension-apiserver-authentication --patch "$data"
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

# As a kubelet asks for it, with a key of its own kind, which it does by itself only when the one that it has is
# about to end. openssl takes 64 characters for a common name, Kubernetes more.
request_kubelet_certificate() {
  local key request name certificate='' tries=60
  local longer=$'openssl_conf = all\n[all]\nstbl_section = types\n[types]\nCN = max:128\n[req]\ndistinguished_name = none\n[none]'
  local requests=/apis/certificates.k8s.io/v1/certificatesigningrequests
  key=$(openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256)
  request=$(openssl req -new -config <(echo "$longer") -key <(echo "$key") -subj "/O=system:nodes/CN=system:node:$machine" |
    base64 --wrap=0)
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

# Their timer goes on when this step has ended.
keep_certificates() {
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
  local namespace namespaces paused
  local kubectl=(kubectl --kubeconfig "$admin" --request-timeout 30s)
  watch authorities_are_published
  # kubectl fails for one when it has restarted the others, and going on leaves its pods with the CAs of before.
  paused=$("${kubectl[@]}" get deployments --all-namespaces --output json | jq --raw-output '[.items[]
    | select(.spec.paused and (.metadata.namespace | startswith("kube-"))) | .metadata
    | "kubectl --namespace \(.namespace) rollout resume deployment \(.name)"] | join("; ")')
  if [[ -n $paused ]]; then
    reason "pods know the new CAs after a restart, and kubectl restarts no paused Deployment: $paused; then run \`pulumi up\` again"
    return 1
  fi
  namespaces=$("${kubectl[@]}" get namespaces --output name | sed --quiet 's|^namespace/\(kube-.*\)|\1|p')
  for namespace in $namespaces; do
    "${kubectl[@]}" --namespace "$namespace" get daemonsets,deployments --output name |
      xargs --no-run-if-empty "${kubectl[@]}" --namespace "$namespace" rollout restart
  done
}
