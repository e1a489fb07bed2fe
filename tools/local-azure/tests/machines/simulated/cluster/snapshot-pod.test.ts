import { KubernetesApi } from "../../../../../../components/cluster/kubernetes-api";
import { saveBeforeLeaving } from "../../../../../../components/cluster/last-snapshot";
import { runSnapshotPod } from "../../../../machines/simulated/cluster/snapshot-pod";

/** The pod by which the program has a machine save etcd, whose Node names this architecture. */
async function ofProgram(architecture = "amd64"): Promise<any> {
  let pod: unknown;
  const api: Partial<KubernetesApi> = {
    list: async () => [],
    find: async (path) =>
      path.includes("/etcd-")
        ? { metadata: { name: "etcd" }, spec: { containers: [{ image: "etcd:its-own" }] } }
        : {
            metadata: { name: "cp-1" },
            status: { phase: "Succeeded", nodeInfo: { systemUUID: "", architecture } },
          },
    apply: async (_, object) => ((pod = object), ""),
    get: async () => "",
    delete: async () => undefined,
  };
  await saveBeforeLeaving({ machine: "cp-2", kubeconfig: "" }, api as KubernetesApi, "cp-1");
  return structuredClone(pod);
}

const save = jest.fn(async () => undefined);
beforeEach(() => save.mockClear());

it("saves etcd where the program's pod asks for it", async () => {
  expect(await runSnapshotPod(await ofProgram(), save)).toMatchObject({ exitCode: 0 });
  expect(save).toHaveBeenCalledTimes(1);
});

it("saves etcd by the loader of the machine's own architecture, and by no other", async () => {
  const pod = await ofProgram("arm64");

  expect(await runSnapshotPod(pod, save, "Arm64")).toMatchObject({ exitCode: 0 });
  expect(await runSnapshotPod(pod, save, "x64")).toMatchObject({ exitCode: 128 });
  expect(save).toHaveBeenCalledTimes(1);
});

it.each<[string, (spec: any) => void, number]>([
  ["may not enter the machine", ({ containers }) => delete containers[0].securityContext, 125],
  ["has another folder of it", ({ volumes }) => (volumes[0].hostPath.path = "/opt"), 128],
  ["may only read it", ({ containers }) => (containers[0].volumeMounts[0].readOnly = true), 128],
  ["is elsewhere in the network", (spec) => (spec.hostNetwork = false), 1],
  ["takes a program for the loader", ({ containers }) => containers[0].command.shift(), 128],
])("saves nothing where the pod %s", async (_, change, exitCode) => {
  const pod = await ofProgram();
  change(pod.spec);

  expect(await runSnapshotPod(pod, save)).toMatchObject({ exitCode });
  expect(save).not.toHaveBeenCalled();
});

it("ends as chroot does on a machine that has no such script, and with what the script says", async () => {
  const pod = await ofProgram();

  expect(await runSnapshotPod(pod, undefined)).toMatchObject({ exitCode: 127 });
  save.mockRejectedValueOnce(new Error("the container refuses this machine"));
  const { output } = (await runSnapshotPod(pod, save))!;
  expect(output.trim().split("\n").at(-1)).toBe("the container refuses this machine");
});

it("is none of another program's pods", async () => {
  const spec = { containers: [{ command: ["etcdctl", "member", "list"] }] };

  expect(await runSnapshotPod({ spec }, save)).toBeUndefined();
});
