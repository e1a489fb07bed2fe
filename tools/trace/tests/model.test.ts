import { destination, origin, serviceName, source } from "../model/packet";

it.each([
  ["10.96.0.10:53", { destination: "10.96.0.10", port: 53, protocol: "tcp" }],
  ["10.96.0.10:53/udp", { destination: "10.96.0.10", port: 53, protocol: "udp" }],
  ["10.96.0.10:53/SCTP", { destination: "10.96.0.10", port: 53, protocol: "sctp" }],
  ["[FD00:0::A]:443/tcp", { destination: "fd00::a", port: 443, protocol: "tcp" }],
])("reads %s", (text, expected) => {
  expect(destination(text)).toEqual(expected);
});

it.each([
  ["10.96.0.10", "ADDRESS:PORT"],
  ["10.96.0.300:80", '"10.96.0.300" is no address'],
  ["web:80", '"web" is no address, and names are not resolved'],
  ["fd00::a:443", "an IPv6 address in brackets"],
  ["[10.96.0.10]:80", '"10.96.0.10" is no address'],
  ["[fe80::1%eth0]:80", "is no address"],
  ["10.96.0.10:0", "a port from 1 to 65535"],
  ["10.96.0.10:65536", "a port from 1 to 65535"],
  ["10.96.0.10:80/icmp", "one of /tcp, /udp, /sctp"],
])("refuses %s, and says what was expected", (text, expected) => {
  expect(() => destination(text)).toThrow(expected);
  expect(() => destination(text)).toThrow(`got "${text}"`);
});

const v4 = destination("10.96.0.10:53");

it("takes a source only of the destination's family", () => {
  expect(source("10.244.1.6", v4)).toBe("10.244.1.6");
  expect(source("[fd00::1]", destination("[fd00::a]:80"))).toBe("fd00::1");
  expect(() => source("fd00::1", v4)).toThrow("an IPv4 address, since the destination is one");
  expect(() => source("10.244.0.0/16", v4)).toThrow("without a prefix length");
});

it("knows three origins", () => {
  expect(origin("outside")).toBe("outside");
  expect(() => origin("inside")).toThrow("one of pod, node, outside");
});

it("reads the name of a Service, with or without a port", () => {
  expect(serviceName("kube-system/kube-dns:dns-tcp")).toEqual({
    namespace: "kube-system",
    name: "kube-dns",
    port: "dns-tcp",
  });
  expect(serviceName("default/web")).toEqual({ namespace: "default", name: "web", port: null });
  expect(() => serviceName("web")).toThrow("NAMESPACE/NAME");
});
