import * as pulumi from "@pulumi/pulumi";

import { problems } from "../../../components/settings/rules";
import { warnings } from "../../../components/settings/warnings";
import { validSettings } from "../../support/sample";
import { access, settingsWith } from "../../support/stack";

const settings = { ...validSettings, proxyMode: "nftables" as const };

const events = (rate: string) => ({
  kubeadm: { ...validSettings.kubeadm, kubeletExtraArgs: { "event-qps": rate } },
});

it("has nothing to say about valid settings", () => {
  expect(warnings(settings)).toEqual([]);
});

it.each([
  {
    what: "an API open to everyone",
    change: { apiAccessCidrs: ["0.0.0.0/0"] },
    says: "apiAccessCidrs opens",
  },
  {
    what: "an API open to half of everyone",
    change: { apiAccessCidrs: ["203.0.113.0/24", "128.0.0.0/1"] },
    says: "apiAccessCidrs opens",
  },
  {
    what: "SSH open to everyone",
    change: { sshAccessCidrs: ["0.0.0.0/0"] },
    says: "sshAccessCidrs opens",
  },
  ...(["networkCidr", "podCidr", "serviceCidr"] as const).map((key) => ({
    what: `a public ${key}`,
    change: { [key]: "20.0.0.0/16" },
    says: `${key} 20.0.0.0/16 is not private`,
  })),
  { what: "a stack without pools", change: { workerPools: [] }, says: "no backend" },
  {
    what: "pools without machines",
    change: { workerPools: validSettings.workerPools.map((pool) => ({ ...pool, count: 0 })) },
    says: "no backend",
  },
  {
    what: "three control planes in two zones",
    change: { zones: ["1", "2"] },
    says: "3 control planes over zone 1 and 2",
  },
  {
    what: "repairs of machines that no cloud provider names",
    change: { autoRepair: true, cloudProvider: false },
    says: "autoRepair is true and cloudProvider false",
  },
  {
    what: "IPVS once its end is near",
    change: { kubernetesVersion: "1.39.0", proxyMode: "ipvs" as const },
    says: "gone in 1.43",
  },
  {
    what: "events of kubelets without a limit",
    change: events("0"),
    says: "pulumi config set --path --type string kubeadm.kubeletExtraArgs.event-qps 50",
  },
])("warns of $what", ({ change, says }) => {
  expect(warnings({ ...settings, ...change })).toEqual([expect.stringContaining(says)]);
});

it.each([
  { what: "a large owner's network", change: { apiAccessCidrs: ["17.0.0.0/8"] } },
  {
    what: "ranges of every private kind",
    change: {
      networkCidr: "192.168.0.0/16",
      podCidr: "100.64.0.0/10",
      serviceCidr: "198.18.0.0/15",
    },
  },
  { what: "one control plane in one zone", change: { controlPlaneCount: 1, zones: ["1"] } },
  { what: "five control planes in three zones", change: { controlPlaneCount: 5 } },
  { what: "a limit of kubelets' events", change: events("5") },
  {
    what: "events of kubelets that take 0 as their default",
    change: { ...events("0"), kubernetesVersion: "1.36.3" },
  },
  {
    what: "nftables after IPVS's end",
    change: { kubernetesVersion: "1.43.0" },
  },
])("says nothing of $what", ({ change }) => {
  expect(warnings({ ...settings, ...change })).toEqual([]);
});

it("reaches the engine's log, and stops nothing", () => {
  const warn = jest.spyOn(pulumi.log, "warn").mockImplementation(async () => undefined);
  const settings = settingsWith({
    location: "westeurope",
    ...access,
    apiAccessCidrs: ["0.0.0.0/0"],
  });
  expect(settings.apiAccessCidrs).toEqual(["0.0.0.0/0"]);
  expect(warn).toHaveBeenCalledWith(expect.stringContaining("whole internet"));
});

it("refuses IPVS where kube-proxy ends at once", () => {
  const messages = problems({ ...validSettings, kubernetesVersion: "1.40.0" }).filter(
    ({ key }) => key === "proxyMode",
  );
  expect(messages).toEqual([
    expect.objectContaining({ fix: "pulumi config set proxyMode nftables" }),
  ]);
});
