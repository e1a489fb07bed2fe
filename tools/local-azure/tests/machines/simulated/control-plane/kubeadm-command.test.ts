import { parseAllDocuments } from "yaml";

import {
  belowRoot,
  endpointOf,
  nodeRegistrationOf,
} from "../../../../machines/simulated/control-plane/kubeadm-command";

const init = `
kind: InitConfiguration
patches: {directory: /etc/zoned/patches}
nodeRegistration: {name: demo-cp-1}
---
kind: ClusterConfiguration
controlPlaneEndpoint: demo.example.org:6443
apiServer: {certSANs: [demo.example.org], extraArgs: [{name: profiling, value: "false"}]}
`;
const join = `
kind: JoinConfiguration
discovery: {file: {kubeConfigPath: /etc/zoned/discovery.conf}}
`;
const read = (text: string) => parseAllDocuments(text).map((document) => document.toJS());

it("moves kubeadm's paths below the root and leaves all else", () => {
  expect(read(belowRoot(init, "/r"))).toEqual([
    {
      kind: "InitConfiguration",
      patches: { directory: "/r/etc/zoned/patches" },
      nodeRegistration: { name: "demo-cp-1" },
    },
    {
      kind: "ClusterConfiguration",
      certificatesDir: "/r/etc/kubernetes/pki",
      controlPlaneEndpoint: "demo.example.org:6443",
      apiServer: {
        certSANs: ["demo.example.org"],
        extraArgs: [{ name: "profiling", value: "false" }],
      },
    },
  ]);
  expect(read(belowRoot(join, "/r"))).toEqual([
    {
      kind: "JoinConfiguration",
      discovery: { file: { kubeConfigPath: "/r/etc/zoned/discovery.conf" } },
    },
  ]);
});

it("adds a name to those of the API's certificate", () => {
  const [, { apiServer }] = read(belowRoot(init, "/r", "127.0.0.1"));

  expect(apiServer.certSANs).toEqual(["demo.example.org", "127.0.0.1"]);
});

it("reads who registers and where the API is", () => {
  expect(nodeRegistrationOf(init, "InitConfiguration").name).toBe("demo-cp-1");
  expect(endpointOf(init)).toBe("demo.example.org:6443");
  expect(() => nodeRegistrationOf(init, "JoinConfiguration")).toThrow("no JoinConfiguration");
});
