import { readdirSync } from "node:fs";
import { join } from "node:path";

import {
  bootstrapScript,
  bootstrapText,
  parsePayload,
  Payload,
  upgradeCordon,
} from "../../../components/machine/payload";
import { cloudInitText } from "../../../components/machine/cloud-init-files";
import { checkout } from "../../../tools/shared/checkout";

const payload: Payload = {
  machine: "zoned-test-cp-1",
  role: "control-plane",
  initialControlPlane: "8a1c7f0e-9f0d-4a6c-9d75-0f2f3c0f5a11",
  apiName: "zoned-test.westeurope.cloudapp.azure.com",
  apiPort: 6443,
  kubernetesVersion: "1.2.3",
  configuration: "now",
  tasks: [],
  drainMinutes: 15,
  nodeAddress: "172.16.1.4",
  modules: ["ip_vs"],
  files: [
    {
      path: "/etc/zoned/a",
      mode: "0600",
      content: "text with \"quotes\", 'others',\n\r\nlines and ü\n",
    },
  ],
};

it("ships all of bootstrap.sh as one file, and its payload after it", () => {
  const shipped = bootstrapText();

  expect(bootstrapScript(payload).startsWith(`${shipped}{`)).toBe(true);
  expect(shipped.endsWith("\nexit\n#--- payload ---\n")).toBe(true);
  expect(shipped).not.toContain(`. "$parts/`);
  for (const part of readdirSync(join(checkout, "cloud-init/bootstrap"))) {
    expect(shipped).toContain(cloudInitText(`bootstrap/${part}`));
  }
});

it("gives back the payload that went in", () => {
  expect(parsePayload(bootstrapScript(payload))).toEqual(payload);
});

it("keeps the payload on one line, whatever its files hold, since Azure's agent changes line ends", () => {
  const [last, document] = bootstrapScript(payload).split("\n").reverse();

  expect(last).toBe("");
  expect(JSON.parse(document!)).toEqual(payload);
  expect(bootstrapScript(payload)).not.toContain("\r");
});

it("refuses a script that is none of its own", () => {
  expect(() => parsePayload("#!/bin/sh\necho hello\n")).toThrow(/has no line "#--- payload ---"/);
});

it("does not quote a payload that is cut off, since it holds keys", () => {
  const cut = '#!/bin/sh\n#--- payload ---\n{"ca.key": "sec';

  expect(() => parsePayload(cut)).toThrow(/is not JSON$/);
});

it("refuses more than Azure takes, and names the largest file", () => {
  const large = {
    path: "/etc/zoned/patches/etcd.yaml",
    mode: "0600",
    content: "x".repeat(200_000),
  };

  expect(() => bootstrapScript({ ...payload, files: [...payload.files, large] })).toThrow(
    /zoned-test-cp-1 is \d+ bytes in base64, and Azure takes at most 262144.*etcd\.yaml with 200000 characters/,
  );
});

it("cordons by the annotation that the doctor knows", () => {
  expect(bootstrapText()).toContain(`cordoned_by=${upgradeCordon}\n`);
});
