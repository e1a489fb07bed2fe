import { bootstrapText } from "../../../../components/machine/payload";
import { FakeMachine } from "../../../support/fake-machine";
import {
  bootstrap,
  caKey,
  controlPlane,
  hostsEntry,
  machineIn,
  script,
} from "../../../support/bootstrapped-machine";

describe("a control plane that has joined", () => {
  let machine: FakeMachine;
  beforeAll(async () => {
    machine = machineIn();
    expect((await bootstrap(machine)).code).toBe(0);
  });

  it("trusts nobody who speaks for the API but this cluster's CA, and goes past every proxy", () => {
    // Nothing that is asked may hold a step for ever.
    for (const call of machine.callsOf("curl")) expect(call).toMatch(/--max-time \d+/);
    const asked = machine.callsOf("curl").filter((call) => call.includes(controlPlane.apiName!));
    expect(asked.join()).toMatch(/\/readyz.*--resolve.*\/api\/v1\/nodes\//);
    for (const call of asked) {
      expect(call).toContain("--cacert /etc/kubernetes/pki/ca.crt");
      expect(call).toContain("--noproxy *");
      if (call.includes("/apis/") || call.includes("/api/")) {
        expect(call).toContain("--cert /var/lib/kubelet/pki/kubelet-client-current.pem");
      }
    }
  });

  it("has used a credential of its own making that ends soon", () => {
    expect(machine.callsOf("kubeadm")).toContain(
      "kubeconfig user --config /etc/zoned/kubeadm-init.yaml --client-name zoned:zoned-test-cp-2 --validity-period 2h " +
        "--org kubeadm:cluster-admins,system:bootstrappers:kubeadm:default-node-token",
    );
  });

  it("means itself by the API's name from then on, and not before", () => {
    expect(machine.read("/hosts-at-join")).not.toContain("# zoned");
    expect(machine.read("/etc/hosts")).toContain(hostsEntry);
  });

  it("has asked the others' etcd, and not the one that it may be running itself", () => {
    const joined = machine.calls.findIndex(([name, verb]) => name === "kubeadm" && verb === "join");
    const asked = machine.calls
      .slice(0, joined)
      .map((words) => words.join(" "))
      .filter((call) => call.includes("/v3/cluster/"));

    expect(asked.length).toBeGreaterThan(0);
    expect(asked.filter((call) => !call.includes("https://172.16.1.4:2379/"))).toEqual([]);
  });

  it("has let no upgrade in the background begin meanwhile", () => {
    expect(machine.callsOf("first-boot")).toEqual([
      "pause_upgrades",
      "remove_package_source",
      "resume_upgrades",
    ]);
  });

  it("has what renews its certificates and awaits events of Azure: the units, and this script without its payload", () => {
    expect(machine.callsOf("systemctl")).toEqual([
      "daemon-reload",
      "enable --now zoned-certificates.timer",
      "daemon-reload",
      "enable zoned-maintenance.service",
      "restart zoned-maintenance.service",
    ]);
    expect(machine.read("/opt/zoned/bootstrap.sh")).toBe(bootstrapText());
    expect(machine.read("/var/lib/zoned/variables")).toContain(`machine=${controlPlane.machine}\n`);
    expect(machine.callsOf("renewal")).toEqual(["report"]);
  });

  it("has no secret left that only the join needed, nor has the script", async () => {
    expect(machine.has("/etc/zoned/discovery.conf")).toBe(false);
    expect(machine.has("/etc/zoned/kubeadm-init.yaml")).toBe(false);
    expect(machine.read("/etc/kubernetes/pki/ca.key")).toBe(caKey);
    expect(machine.read(script)).toBe(bootstrapText());
    expect((await bootstrap(machine)).stderr).toContain("run `pulumi up` for more");
  });
});
