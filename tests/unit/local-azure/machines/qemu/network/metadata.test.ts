import { describe as answer } from "../../../../../../local-azure/machines/qemu/network/metadata";

const machine = {
  address: "172.16.1.4",
  subnet: { address: "172.16.1.0", prefix: "24" },
  mac: "00:0d:3a:01:02:03",
  compute: { name: "cp-1", vmId: "abc", zone: "1" },
};

const ask = (path: string, headers: Record<string, string> = { metadata: "true" }, of = machine) =>
  answer(new URL(path, "http://169.254.169.254"), headers, of);

test("a machine reads one value as text, as the bootstrap step does", () => {
  expect(ask("/metadata/instance/compute/vmId?api-version=2021-02-01&format=text")).toEqual({
    status: 200,
    body: "abc",
    isText: true,
  });
});

test("a whole document has compute and network", () => {
  expect(ask("/metadata/instance?api-version=2021-02-01").body).toMatchObject({
    compute: { name: "cp-1", zone: "1" },
    network: { interface: [{ macAddress: "000D3A010203" }] },
  });
});

test("without its header, or through a proxy, it says nothing", () => {
  expect(ask("/metadata/instance?api-version=2021-02-01", {}).status).toBe(400);
  expect(
    ask("/metadata/instance?api-version=2021-02-01", { metadata: "true", "x-forwarded-for": "1" })
      .status,
  ).toBe(400);
});

test("a version that there is none of is refused, and so is a leaf as JSON", () => {
  expect(ask("/metadata/instance?api-version=2000-01-01").status).toBe(400);
  expect(ask("/metadata/instance/compute/vmId?api-version=2021-02-01").status).toBe(404);
  expect(ask("/metadata/instance/compute/nothing?api-version=2021-02-01").status).toBe(404);
});
