import { parse } from "yaml";

import { apiNameIn, changesOf, machineTable, reachableHere } from "../../rehearsal/cluster-view";

const kubeconfig = JSON.stringify({
  clusters: [
    {
      name: "a",
      cluster: { server: "https://api.example:6443", "certificate-authority-data": "Y2E=" },
    },
  ],
});

it("makes a kubeconfig reach the API here, and still check its certificate by its name", () => {
  expect(apiNameIn(kubeconfig)).toBe("api.example");
  expect(parse(reachableHere(kubeconfig, { host: "127.0.0.1", port: 20001 }))).toEqual({
    clusters: [
      {
        name: "a",
        cluster: {
          server: "https://127.0.0.1:20001",
          "tls-server-name": "api.example",
          "certificate-authority-data": "Y2E=",
        },
      },
    ],
  });
});

it("leaves a kubeconfig to its own proxy, which knows the API's name", () => {
  const { clusters, ...rest } = JSON.parse(kubeconfig);
  const cluster = { ...clusters[0].cluster, "proxy-url": "http://127.0.0.1:3128" };
  const proxied = { ...rest, clusters: [{ name: "a", cluster }] };

  const here = reachableHere(JSON.stringify(proxied), { host: "127.0.0.1", port: 20001 });

  expect(parse(here)).toEqual(proxied);
});

it("shows of every machine where it is and whether the cluster calls it ready", () => {
  const machine = (name: string, zone: string) => ({
    name,
    role: "worker",
    zone,
    address: "172.16.1.4",
  });
  const node = (name: string, zone: string, status: string) => ({
    metadata: { name, labels: { "topology.kubernetes.io/zone": zone } },
    status: { conditions: [{ type: "Ready", status }] },
  });

  const table = machineTable(
    [machine("a", "x-1"), machine("bb", "x-2"), machine("c", "x-3")],
    [node("a", "x-1", "True"), node("bb", "x-2", "Unknown")],
  );

  expect(table.split("\n")).toEqual([
    "MACHINE  ZONE           ADDRESS     ROLE    READY",
    "a        x-1            172.16.1.4  worker  yes",
    "bb       x-2            172.16.1.4  worker  no",
    "c        x-3 (no node)  172.16.1.4  worker  no node",
  ]);
});

const report = (step: string, power = "running", seconds = 7) => ({
  ...{ name: "cp-1", power, step, seconds, serial: "/serial.log", agent: "/agent" },
});

const seen = (one: ReturnType<typeof report>) => new Map([[one.name, one]]);

test("a step that ended is reported with its machine and its seconds", () => {
  expect(changesOf(seen(report("booting")), [report("first boot: tools")])).toEqual([
    "  cp-1: booting (7 s)",
  ]);
});

test("a machine that died is reported, and one that goes on is not", () => {
  expect(changesOf(seen(report("booting")), [report("booting", "died")])).toEqual(["  cp-1: died"]);
  expect(changesOf(seen(report("booting")), [report("booting")])).toEqual([]);
});
