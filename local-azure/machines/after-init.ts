import { type Api, unlessStatus } from "./api";

/** kubeadm does this on the way, but only with an admin.conf in /etc/kubernetes. */
export async function bindAdministrators(api: Api): Promise<void> {
  const name = "kubeadm:cluster-admins";
  const apiGroup = "rbac.authorization.k8s.io";
  await api
    .post(`/apis/${apiGroup}/v1/clusterrolebindings`, {
      apiVersion: `${apiGroup}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name },
      roleRef: { apiGroup, kind: "ClusterRole", name: "cluster-admin" },
      subjects: [{ apiGroup, kind: "Group", name }],
    })
    .catch(unlessStatus(409));
}

/** What kubeadm has written into the cluster names this host's address and folder; here it gets what a machine's has. */
export async function nameMachineAgain(
  api: Api,
  here: { readonly address: string; readonly root: string },
  endpoint: string,
): Promise<void> {
  const restore = async (configMap: string, from: string, to: string) => {
    const { data } = await api.get(configMap);
    const restored = Object.entries(data as Record<string, string>).map(([key, text]) => [
      key,
      text.replaceAll(from, to),
    ]);
    await api.patch(configMap, { data: Object.fromEntries(restored) });
  };
  const of = (namespace: string, name: string) =>
    `/api/v1/namespaces/${namespace}/configmaps/${name}`;
  await Promise.all([
    restore(of("kube-public", "cluster-info"), here.address, `https://${endpoint}`),
    restore(of("kube-system", "kubeadm-config"), here.root, ""),
  ]);
}
