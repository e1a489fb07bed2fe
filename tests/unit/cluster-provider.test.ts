import { ConfigMap } from "@pulumi/kubernetes/core/v1";
import { ClusterRole } from "@pulumi/kubernetes/rbac/v1";
import * as pulumi from "@pulumi/pulumi";

import { clusterProvider } from "../../components/cluster-provider";
import { Member } from "../../components/control-plane";
import { Plan } from "../../components/plan/plan";
import { dependenciesOf, Recorded, Recorder, revealed } from "../support/record";

const kubeconfig = {
  clusters: [{ name: "dev", cluster: { server: "https://api.example:6443" } }],
};
const serverOf = ({ inputs }: Recorded): string =>
  JSON.parse(inputs["kubeconfig"]).clusters[0].cluster.server;

/** With certificates that are still to be made. */
const unknown = new (pulumi.Output as any)(
  new Set(),
  Promise.resolve(undefined),
  Promise.resolve(false),
  Promise.resolve(true),
  Promise.resolve(new Set()),
) as pulumi.Output<string>;

interface Scene {
  readonly isRestoring?: boolean;
  readonly preview?: boolean;
  /** That of this update. */
  readonly now?: pulumi.Output<string>;
  /** That of the last update. */
  readonly previousKubeconfig?: string;
}

/** The provider of a cluster, and an object in that cluster. */
async function build(id: string, exists: boolean, scene: Scene = {}) {
  const { isRestoring = false, preview = false, previousKubeconfig } = scene;
  const { now = pulumi.output(JSON.stringify(kubeconfig)) } = scene;
  const recorder = await Recorder.start({ preview });
  const steps = ["first", "second"].map((name) => new pulumi.ComponentResource("test:Step", name));
  await pulumi.runtime.runInPulumiStack(async () => {
    pulumi.runtime.registerStackTransformation(recorder.watch);
    const plan = {
      apiServer: { name: "api.example", port: 6443 },
      initialization: { id, exists, isRestoring },
      previousKubeconfig,
    };
    const provider = clusterProvider(now, plan as Plan, { step: steps[0] } as unknown as Member);
    // The last to see what an object is registered with.
    pulumi.runtime.registerStackTransformation(recorder.watch);
    new ConfigMap("settings", { metadata: { name: "settings" } }, { provider });
    new ClusterRole("role", {}, { provider });
    new pulumi.ComponentResource("test:Other", "other");
  });
  const provider = await recorder.only("pulumi:providers:kubernetes");
  const objects = (await recorder.all()).filter(({ type }) => type.startsWith("kubernetes:"));
  return { steps, provider, objects };
}

const awaitedBy = async (provider: Recorded, steps: readonly pulumi.Resource[]) =>
  (await dependenciesOf(provider)).map((one) => steps.indexOf(one));

it("has every object in the cluster go with the cluster's provider", async () => {
  const { provider, objects } = await build("1-then", false);

  expect(objects).toHaveLength(2);
  for (const { opts } of objects) expect(opts.deletedWith === provider.resource).toBe(true);
  expect(provider.opts.deletedWith).toBeUndefined();
});

it("has another provider, and another cluster to it, for another initialization", async () => {
  const [first, second] = [await build("1-then", false), await build("2-now", false)];

  expect([first, second].map(({ provider }) => provider.name)).toEqual([
    "kubernetes",
    "kubernetes-2",
  ]);
  expect(first.provider.inputs).toMatchObject({ clusterIdentifier: "api.example/1-then" });
  expect(second.provider.inputs).toMatchObject({ clusterIdentifier: "api.example/2-now" });
});

it("applies to a living cluster once its first control plane is as it shall be", async () => {
  const [fresh, living] = [await build("1-then", false), await build("1-then", true)];

  expect(await awaitedBy(fresh.provider, fresh.steps)).toEqual([]);
  expect(await awaitedBy(living.provider, living.steps)).toEqual([0]);
});

it("takes up again what an interrupted up has made", async () => {
  const { provider } = await build("1-then", false);

  expect(provider.inputs).toMatchObject({
    upsertExistingObjects: "true",
    enablePatchForce: "true",
  });
});

it("deletes no ConfigMap and no Secret whose data change", async () => {
  const { provider } = await build("1-then", false);

  expect(provider.inputs).toMatchObject({
    enableConfigMapMutable: "true",
    enableSecretMutable: "true",
  });
});

it("is configured anew for a restored cluster, once its API answers, and makes no object anew for that", async () => {
  const [before, after] = [await build("1-then", true), await build("1-then-later", true)];

  expect(after.provider.inputs.clusterIdentifier).toBe(before.provider.inputs.clusterIdentifier);
  expect(after.provider.name).toBe(before.provider.name);
  expect(JSON.parse(after.provider.inputs.kubeconfig)).toEqual({
    ...kubeconfig,
    extensions: [{ name: "zoned", extension: { restoration: "1-then-later" } }],
  });
  expect(JSON.parse(before.provider.inputs.kubeconfig)).toEqual(kubeconfig);
});

it("asks no API in the preview of a restoration, and the restored one in the update", async () => {
  const id = "1-then-later";
  const restoration = { isRestoring: true };
  const preview = await build(id, true, { ...restoration, preview: true });
  const up = await build(id, true, restoration);
  const later = await build(id, true, { preview: true });

  expect(serverOf(preview.provider)).toBe("https://127.0.0.1:1");
  expect([up, later].map(({ provider }) => serverOf(provider))).toEqual(
    Array(2).fill("https://api.example:6443"),
  );
});

const before = JSON.stringify({ ...kubeconfig, users: ["before"] });

it.each<[when: string, id: string, exists: boolean, scene: Scene, given: unknown]>([
  ["of before while it is unknown", "1-then", true, { now: unknown }, before],
  ["of this update where it is known", "1-then", true, {}, JSON.stringify(kubeconfig)],
  [
    "that is unknown where there is no cluster",
    "1-then",
    false,
    { now: unknown },
    { __pulumiUnknown: true },
  ],
])("has in a preview the kubeconfig %s", async (_, id, exists, scene, given) => {
  const preview = await build(id, exists, { ...scene, preview: true, previousKubeconfig: before });

  expect(revealed(preview.provider.inputs["kubeconfig"])).toEqual(given);
});
