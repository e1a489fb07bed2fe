import { findService } from "../../evaluate/find-service";
import { nodeDump } from "../../read/read-dumps";
import { goldenDumps } from "../support/kube-proxy/golden-dumps";

describe.each(["iptables", "nftables"] as const)("a Service in rules of %s", (mode) => {
  const node = nodeDump(
    goldenDumps(mode).filter(({ file }) =>
      /^(ip6?tables-save|nft list ruleset|ip address)$/.test(file),
    ),
  );
  const found = (name: string) =>
    findService(node, name)
      .map(({ destination, port, protocol }) => `${destination} ${port}/${protocol}`)
      .sort();

  it.each([
    ["lab/plain", ["10.96.0.10 80/tcp", "fd00:10:96::10 80/tcp"]],
    ["lab/ports:dns", ["10.96.0.11 53/udp", "fd00:10:96::11 53/udp"]],
    ["lab/ports:9153", ["10.96.0.11 9153/tcp", "fd00:10:96::11 9153/tcp"]],
    ["lab/unnamed", ["10.96.0.12 80/tcp", "fd00:10:96::12 80/tcp"]],
    ["lab/empty", ["10.96.0.30 80/tcp", "fd00:10:96::30 80/tcp"]],
    ["lab/balanced-far", ["10.96.0.20 80/tcp", "fd00:10:96::20 80/tcp"]],
    ["lab/only-v6", ["fd00:10:96::91 80/tcp"]],
  ])("is reached by its cluster IPs: %s", (name, expected) => {
    expect(found(name)).toEqual(expected);
  });

  it("has ports that a wrong one is answered with", () => {
    expect(() => found("lab/ports:https")).toThrow(/dns \(53\)/);
    expect(() => found("lab/gone")).toThrow('got "lab/gone"');
  });
});
