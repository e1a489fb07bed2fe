import { succeeded } from "../../local-cloud";
import { expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { saw, whileWriting } from "../writer";

/** One stage of another key or CA by one update, on the same machines; returns what a client saw. */
export async function stage(cluster: RealCluster, says: string): Promise<string> {
  const before = await cluster.generations();
  const { result, written } = await whileWriting(cluster, () => cluster.up());
  expectSaid(succeeded(result).stdout, [says]);
  expectSame("machines", await cluster.generations(), before);
  return saw(written);
}
