import { current, nextPatch, previousMinor } from "../../programs/releases";
import type { Chapter } from "./claim";
import { authorityClaims, certificateClaims } from "./claims/certificates";
import { closedClaims, podClaims } from "./claims/pods";
import { giveShop, identityClaims } from "./claims/identity";
import { imageClaims } from "./claims/image";
import { areInitialized, comesUp, initializationClaims, nodeClaims } from "./claims/nodes";
import {
  giveLandingZone,
  landingZone,
  landingZoneClaims,
  landingZonePatchClaims,
} from "./claims/landing-zone";
import { lifeClaims, lostWorkerClaims } from "./claims/life";
import { maintenanceClaims, workerMaintenanceClaims } from "./claims/maintenance";
import { restoreClaims } from "./claims/restore";
import { securityClaims } from "./claims/security";
import { manyServicesClaims, serviceClaims, switchingClaims } from "./claims/services";
import { serviceAccountKeyClaims } from "./claims/service-account-key";
import { threeClaims } from "./claims/three";
import { trafficClaims } from "./claims/traffic";
import { patchClaims, upgradeClaims, upgradeThreeClaims } from "./claims/upgrade";
import { conformanceClaims, upstreamClaims } from "./claims/upstream";

const oneWorker = [{ name: "workers", count: 1, size: "Standard_B2s" }];

export const chapters: readonly Chapter[] = [
  {
    key: "one",
    name: "one control plane and two workers",
    settings: {},
    claims: [
      comesUp,
      ...nodeClaims,
      ...serviceClaims,
      ...podClaims,
      ...closedClaims,
      ...switchingClaims,
      ...lifeClaims,
      ...lostWorkerClaims,
      ...manyServicesClaims,
    ],
  },
  {
    key: "conformance",
    name: "one control plane and two workers, asked by upstream's conformance tests",
    settings: {},
    claims: [comesUp, ...upstreamClaims],
  },
  {
    key: "conformance-all",
    name: "one control plane and two workers, asked by all of upstream's conformance tests",
    settings: {},
    claims: [comesUp],
    listed: conformanceClaims,
  },
  {
    key: "alone",
    name: "one control plane alone",
    settings: { workerPools: [] },
    claims: [comesUp, ...securityClaims, ...certificateClaims, ...initializationClaims],
  },
  {
    key: "three",
    name: "three control planes",
    settings: { controlPlaneCount: 3, workerPools: [] },
    claims: [comesUp, ...threeClaims],
  },
  {
    key: "maintenance",
    name: "three control planes, which Azure maintains",
    settings: { controlPlaneCount: 3, workerPools: [] },
    claims: [comesUp, ...maintenanceClaims],
  },
  {
    key: "maintenance-worker",
    name: "one control plane and two workers, which Azure maintains",
    settings: {},
    claims: [comesUp, ...workerMaintenanceClaims],
  },
  {
    key: "traffic",
    name: "one control plane and two workers in three zones, with Azure's cloud provider",
    settings: { cloudProvider: true },
    claims: [comesUp, areInitialized, ...trafficClaims],
  },
  {
    key: "upgrade",
    name: "one control plane and one worker, from minor to minor, and back by a snapshot",
    settings: {
      kubernetesVersion: previousMinor.version,
      workerPools: oneWorker,
    },
    upgrades: [current.version],
    claims: [comesUp, ...upgradeClaims],
  },
  {
    key: "patch",
    name: "one control plane and one worker, to the next patch, taken back half-way",
    settings: { workerPools: oneWorker },
    upgrades: [nextPatch.version],
    claims: [comesUp, ...patchClaims],
  },
  {
    key: "upgrade-three",
    name: "three control planes, from minor to minor",
    settings: {
      kubernetesVersion: previousMinor.version,
      controlPlaneCount: 3,
      workerPools: [],
    },
    upgrades: [current.version],
    claims: [comesUp, ...upgradeThreeClaims],
  },
  {
    key: "landing-zone",
    name: "three control planes in a landing zone: a given subnet, a private API, a firewall's proxy",
    settings: { ...landingZone, controlPlaneCount: 3, workerPools: [] },
    give: giveLandingZone,
    claims: landingZoneClaims,
  },
  {
    key: "landing-zone-patch",
    name: "one control plane in a landing zone, a worker that joins it, and both to the next patch",
    settings: { ...landingZone, workerPools: [] },
    upgrades: [nextPatch.version],
    give: giveLandingZone,
    claims: [comesUp, ...landingZonePatchClaims],
  },
  {
    key: "authorities",
    name: "one control plane, one worker and metrics-server, with other certificate authorities",
    settings: {
      metricsServer: true,
      workerPools: oneWorker,
    },
    claims: [comesUp, ...authorityClaims],
  },
  {
    key: "identity",
    name: "one control plane and one worker, with identities in place of secrets, then another key of service accounts",
    settings: {
      cloudProvider: true,
      workerPools: oneWorker,
    },
    give: giveShop,
    claims: [comesUp, areInitialized, ...identityClaims, ...serviceAccountKeyClaims],
  },
  {
    key: "image",
    name: "one control plane and one worker, and a worker of an image",
    settings: { workerPools: oneWorker },
    pullsAddOns: true,
    claims: [comesUp, ...imageClaims],
  },
  {
    key: "restore",
    name: "one control plane, lost and restored, and one worker",
    settings: { workerPools: oneWorker },
    claims: restoreClaims(1),
  },
  {
    key: "restore-three",
    name: "three control planes, all lost and restored, and one worker",
    settings: {
      controlPlaneCount: 3,
      workerPools: oneWorker,
    },
    claims: restoreClaims(3),
  },
];

/** What real machines could show and this suite does not, with the reason. */
export const notCovered: Readonly<Record<string, string>> = {
  "upstream's other conformance tests for Services: find, status, collection, other changes of type, switched affinity":
    "they ask the API alone, or once more what those above ask",
  "upstream's other conformance tests for DNS: /etc/hosts, subdomain":
    "they ask once more what those above ask",
  "the same with KVM, and on Ubuntu 24.04": "neither is at hand here",
  "Azure's disk driver and Canal": "their images cannot be had from package registries",
};
