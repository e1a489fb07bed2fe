import { testImage } from "../../mirror/images/wanted-images";
import { eventually, expectSame, lowestDuring } from "./claim";
import type { RealCluster } from "./real-cluster";

export const namespace = "zoned-budget";
const app = { app: "budget" };
export const replicas = 3;
export const atLeast = 2;

/** Three pods anywhere, of which two have to be there. */
const budgeted = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "budget", namespace },
    spec: {
      replicas,
      selector: { matchLabels: app },
      template: {
        metadata: { labels: app },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: "sleep", image: testImage, command: ["sleep", "infinity"] }],
        },
      },
    },
  },
  {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "budget", namespace },
    spec: { minAvailable: atLeast, selector: { matchLabels: app } },
  },
];

const available = async (cluster: RealCluster): Promise<number> => {
  const deployment = ["get", "deployment", "budget", "--namespace", namespace];
  const path = "--output=jsonpath={.status.availableReplicas}";
  return Number((await cluster.kubectl([...deployment, path])) || "0");
};

/** The fewest pods that were available while this work was done, as often as the API answered. */
export async function fewestDuring<T>(
  cluster: RealCluster,
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly fewest: number }> {
  await cluster.apply(...budgeted);
  await eventually(600, cluster.signal, async () =>
    expectSame("available pods", await available(cluster), replicas),
  );
  const { result, lowest } = await lowestDuring(() => available(cluster), work);
  return { result, fewest: Math.min(replicas, lowest) };
}
