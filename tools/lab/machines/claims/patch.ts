import { current, nextPatch } from "../../../programs/releases";
import { succeeded } from "../../local-cloud";
import type { Claim } from "../claim";
import { expectVersion, failsToUpgrade, unchangedAfter, upgrade } from "./upgrade";

/** To a patch, which shares etcd with the one before, so that there is a way back. */
export const patchClaims: readonly Claim[] = [
  {
    sentence:
      "when kubeadm is killed in every try to upgrade a machine to a patch, `pulumi up` ends with the machine and the step; taken back, the next one puts it back",
    isGround: true,
    check: async (cluster) => {
      const killed = await failsToUpgrade(cluster, { kubernetesVersion: nextPatch.version });
      await cluster.configure({});
      succeeded(await cluster.up());
      await expectVersion(cluster, current.version);
      return `killed ${killed} times`;
    },
  },
  {
    sentence: `one \`pulumi up\` upgrades every machine to ${nextPatch.version} after that`,
    isGround: true,
    check: async (cluster) => (await upgrade(cluster, nextPatch.version)).said,
  },
  unchangedAfter(nextPatch.version),
];
