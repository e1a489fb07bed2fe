import {
  bootstrap,
  controlPlane,
  deeds,
  hostsEntry,
  machineIn,
  programs,
  runStep,
  ship,
} from "../../../support/bootstrapped-machine";
import { FakeMachine } from "../../../support/fake-machine";

describe("a control plane behind an internal balancer, which sends nothing back to its sender", () => {
  const behind = { ...controlPlane, isApiPrivate: true };
  const pod = (name: string, more: object) => ({
    metadata: { name, namespace: "kube-system" },
    ...more,
  });
  const onHost = JSON.stringify({
    items: [
      pod("kube-proxy-abcde", { spec: { hostNetwork: true } }),
      pod("coredns-abcde", { spec: {} }),
      {
        metadata: {
          ...pod(`etcd-${controlPlane.machine}`, {}).metadata,
          annotations: { "kubernetes.io/config.mirror": "hash" },
        },
        spec: { hostNetwork: true },
      },
    ],
  });
  const join = () => {
    const machine = machineIn({}, behind);
    const answering = `*:172.16.1.4\\ *) exit "$(cat "$root/peer" 2>/dev/null || echo 0)" ;;`;
    machine.program(
      "curl",
      programs.curl.replace("*--resolve*)", `${answering}\n    *--resolve*)`),
    );
    machine.program(
      "kubectl",
      programs.kubectl.replace(
        `*"get pods"*)`,
        `*spec.nodeName*) echo '${onHost}' ;;\n    *"get pods"*)`,
      ),
    );
    return machine;
  };

  describe("when it has joined", () => {
    let machine: FakeMachine;
    beforeAll(async () => {
      machine = join();
      expect((await bootstrap(machine)).code).toBe(0);
    });

    it("has meant another control plane by the API's name before, and means itself", () => {
      const { apiName } = controlPlane;
      expect(machine.read("/hosts-at-join")).toContain(`172.16.1.4 ${apiName} # zoned`);
      expect(machine.read("/etc/hosts")).toContain(hostsEntry);
      expect(machine.read("/etc/hosts")).not.toContain("172.16.1.4");
    });

    const deleted = () =>
      machine
        .callsOf("kubectl")
        .filter((call) => call.includes("delete pod"))
        .map((call) => /delete pod (\S+)/.exec(call)![1]);

    it("has started the pods on its network anew, whose /etc/hosts are those of before, and no others", () => {
      expect(deleted()).toEqual(["kube-proxy-abcde"]);
    });

    it("leaves them alone when it is configured otherwise", async () => {
      machine.forgetCalls();
      ship(machine, { ...behind, configuration: "later" });

      expect(await bootstrap(machine)).toMatchObject({ code: 0, stderr: "" });

      expect(machine.callsOf("kubeadm").join()).toContain("upgrade node --config");
      expect(deleted()).toEqual([]);
    });
  });

  it("does not join while no other API server answers it, and says who was asked", async () => {
    const machine = join();
    machine.write("/peer", "28");

    const { code, stdout } = await runStep(machine, "join");

    expect(code).not.toBe(0);
    expect(stdout).toMatch(/no API server of another control plane answers.*172\.16\.1\.4/);
    expect(deeds(machine)).toEqual([]);
  });
});
