import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Settings } from "../../../../components/settings/settings";
import { subscriptionPath } from "../../../local-azure/arm/resources/resource";
import { run } from "../../../shared/run";
import { metadataAddress } from "../../../local-azure/machines/qemu/network/namespaces";
import { ImageLayout, mediaTypes } from "../../../mirror/images/image-layout";
import { agnhostImage, testImage } from "../../../mirror/images/wanted-images";
import { type Claim, eventually, expectSame } from "../claim";
import type { Given, RealCluster } from "../real-cluster";
import { everywhere } from "./nodes";
import { expose } from "./traffic";

export const namespace = "zoned-identity";
const location = "southeastasia";
const images = `${subscriptionPath}/resourceGroups/images`;
/** The first is the cluster's; of the other one nobody has told it. */
const [ours, others] = ["ourimages", "otherimages"].map((name) => ({
  id: `${images}/providers/Microsoft.ContainerRegistry/registries/${name}`,
  server: `${name}.azurecr.io`,
})) as [Registry, Registry];
const repository = "shop/app";
const word = "from a private registry";

const storage = "shopblobs";
const blob = `https://${storage}.blob.core.windows.net/orders/order`;
const order = "order 4711";
const storageBlobDataReader = "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1";

interface Registry {
  readonly id: string;
  readonly server: string;
}

interface Config {
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

/** The file by which a container says that its image is from there. */
const wordFile = "/word";

/**
 * Puts into a registry what the mirror has not: the test image with one file more, in a layer of its own. All
 * else of it containerd may take from the mirror, which it asks first.
 */
async function publish(
  image: string,
  word: string,
  { mirror, images }: { readonly mirror: string; readonly images: string },
): Promise<void> {
  const from = new ImageLayout(join(mirror, "images"));
  const to = new ImageLayout(images);
  const base = from.find(testImage);
  if (base === undefined) throw new Error(`the mirror has no ${testImage}`);
  const { config, layers } = from.manifest(base);
  const { rootfs, ...others } = JSON.parse(
    readFileSync(from.blobPath(config.digest), "utf8"),
  ) as Config;
  mkdirSync(images, { recursive: true });
  const draft = mkdtempSync(join(images, "draft-"));
  try {
    writeFileSync(join(draft, wordFile), word);
    const tar = join(draft, "layer.tar");
    const same = ["--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
    await run(["tar", "--create", ...same, "--file", tar, "--directory", draft, `.${wordFile}`]);
    const layer = await to.take(mediaTypes.layer, tar);
    for (const { digest } of layers) copyFileSync(from.blobPath(digest), to.blobPath(digest));
    const added = to.add(
      mediaTypes.config,
      JSON.stringify({
        ...others,
        rootfs: { ...rootfs, diff_ids: [...rootfs.diff_ids, layer.digest] },
      }),
    );
    const manifest = { schemaVersion: 2, mediaType: mediaTypes.manifest, config: added };
    to.name(
      image,
      to.add(mediaTypes.manifest, JSON.stringify({ ...manifest, layers: [...layers, layer] })),
      `${testImage} and a word`,
    );
  } finally {
    rmSync(draft, { recursive: true });
  }
}

/** What others have made: a blob, and two registries with an image; and what the stack says of them. */
export async function giveShop(cluster: RealCluster): Promise<Given> {
  const scope = await cluster.container(storage, "orders");
  await cluster.putBlob(scope, "order", order);
  await cluster.sendToAzure("PUT", images, { location });
  for (const { id, server } of [ours, others]) {
    await cluster.sendToAzure("PUT", id, { location, sku: { name: "Basic" }, properties: {} });
    const at = { mirror: cluster.mirror, images: cluster.imagesOf(server) };
    await publish(`${server}/${repository}:1`, word, at);
  }
  // Without the policies that machines of emulated processors do without, no pod gets what it logs in with.
  const { kubeadm } = cluster.stack.settings as unknown as Pick<Settings, "kubeadm">;
  const { "disable-admission-plugins": _, ...apiServerExtraArgs } = kubeadm.apiServerExtraArgs;
  const roles = [{ role: storageBlobDataReader, scope }];
  return {
    settings: {
      kubeadm: { ...kubeadm, apiServerExtraArgs },
      machineIdentity: false,
      registries: [ours.id],
      workloadIdentities: [{ namespace, serviceAccount: "app", roles }],
    },
    secrets: {},
  };
}

interface Named {
  readonly name: string;
  readonly properties: { readonly clientId: string };
}

const clusterName = "zoned-machines";
const kubelets = `${clusterName}-kubelet`;

/** Client ids of the group's identities by their names. */
async function identitiesOf(cluster: RealCluster): Promise<Record<string, string>> {
  const path = "/Microsoft.ManagedIdentity/userAssignedIdentities";
  const { value } = await cluster.inGroup("GET", path);
  return Object.fromEntries(
    (value as Named[]).map(({ name, properties }) => [name, properties.clientId]),
  );
}

const metadata = `http://${metadataAddress}/metadata/identity/oauth2/token?api-version=2018-02-01`;
const askMetadata = (resource: string, clientId: string): string =>
  `curl --silent --max-time 10 --header Metadata:true '${metadata}&resource=${resource}&client_id=${clientId}'`;

const carriesNone: Claim = {
  sentence:
    "no machine carries the cluster's identity: its metadata service gives tokens of the kubelets' alone",
  check: async (cluster) => {
    const clients = await identitiesOf(cluster);
    await everywhere(cluster, async (name) => {
      const { identity } = await cluster.ask("GET", name);
      const carried = Object.keys(identity?.userAssignedIdentities ?? {});
      expectSame(
        `identities of ${name}`,
        carried.map((id) => id.split("/").at(-1)),
        [kubelets],
      );
      const arm = "https://management.azure.com/";
      const refused = await cluster.inMachine(name, askMetadata(arm, clients[clusterName]!));
      const { error_description: why } = JSON.parse(refused) as Record<string, string>;
      expectSame(`a token of ${clusterName} on ${name}`, why, "Identity not found");
      const registry = "https://containerregistry.azure.net/";
      const given = await cluster.inMachine(name, askMetadata(registry, clients[kubelets]!));
      const { client_id: client } = JSON.parse(given) as Record<string, string>;
      expectSame(`a token of ${kubelets} on ${name}`, client, clients[kubelets]);
    });
    return `of ${Object.keys(clients).length} identities, one on each machine`;
  },
};

export const balances =
  (name: string): Claim["check"] =>
  async (cluster) =>
    `its address came after ${await expose(cluster, name, 2)} s`;

interface Pod {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly containers: readonly {
      readonly env?: readonly { readonly name: string; readonly value?: string }[];
      readonly volumeMounts?: readonly { readonly name: string }[];
    }[];
    readonly volumes?: readonly { readonly name: string }[];
  };
  readonly status: {
    readonly containerStatuses?: readonly {
      readonly state: { readonly waiting?: { readonly message?: string } };
    }[];
  };
}

const podNamed = async (cluster: RealCluster, name: string): Promise<Pod> => {
  const pods = await cluster.get<Pod>("pods", "--namespace", namespace);
  const found = pods.find(({ metadata }) => metadata.name === name);
  if (found === undefined) throw new Error(`there is no pod ${name}`);
  return found;
};

const podOf = (name: string, spec: object): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace },
  spec: { terminationGracePeriodSeconds: 1, ...spec },
});

const namespaceItself = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };

/** A pod of an image that is in a registry alone, on this machine; it says the word that is in the image. */
const puller = (name: string, { server }: Registry, nodeName: string): object =>
  podOf(name, {
    nodeName,
    containers: [
      {
        name: "word",
        image: `${server}/${repository}:1`,
        // A line that does not end is not logged before the container ends.
        command: ["sh", "-c", `cat ${wordFile}; echo; exec sleep 86400`],
      },
    ],
  });

const logsOf = (cluster: RealCluster, name: string): Promise<string> =>
  cluster.kubectl(["logs", name, "--namespace", namespace]);

interface Event {
  readonly reason: string;
  readonly message: string;
  readonly involvedObject: { readonly name: string };
}

const pulls: Claim = {
  sentence:
    "every machine pulls an image of a registry that the settings name, with no secret of any kind; who shows none of Entra's tokens is refused there",
  check: async (cluster) => {
    const names = await cluster.names();
    const pods = names.map((name) => [`pull-on-${name}`, name] as const);
    await cluster.apply(namespaceItself, ...pods.map(([pod, name]) => puller(pod, ours, name)));
    for (const [pod] of pods) {
      await eventually(300, cluster.signal, async () => {
        expectSame(`what ${pod} says`, await logsOf(cluster, pod), `${word}\n`);
      });
    }
    await everywhere(cluster, async (name) => {
      const curl =
        "curl --silent --max-time 20 --cacert /etc/ssl/certs/local-azure.pem --output /dev/null --write-out '%{http_code}\\n'";
      const said = await cluster.inMachine(
        name,
        `${curl} https://${ours.server}/v2/${repository}/manifests/1
         ${curl} 'https://${ours.server}/oauth2/token?service=${ours.server}&scope=repository:${repository}:pull'`,
      );
      expectSame(`without a token, ${name} is answered`, said.trim().split("\n"), ["401", "401"]);
    });
    const events = await cluster.get<Event>("events", "--namespace", namespace);
    const took = events
      .filter(({ reason }) => reason === "Pulled")
      .flatMap(
        ({ message }) => /^Successfully pulled image .* in (\S+) \(/.exec(message)?.[1] ?? [],
      );
    return `pulled in ${took.join(" and ")}`;
  },
};

const pullsNoOther: Claim = {
  sentence: "they pull nothing from a registry that the settings do not name",
  check: async (cluster) => {
    const [name = ""] = await cluster.names("worker");
    await cluster.apply(namespaceItself, puller("pull-others", others, name));
    return await eventually(300, cluster.signal, async () => {
      const { status } = await podNamed(cluster, "pull-others");
      const message = status.containerStatuses?.[0]?.state.waiting?.message ?? "";
      if (!message.includes("401")) throw new Error(`the pod says: ${message}`);
      return message.slice(-160);
    });
  },
};

const curl = "curl --silent --max-time 30 --cacert /azure/ca.crt";
/** Asks Entra for a token, as the identity that the cluster has given the pod. */
export const loginBy = (assertion: string): string =>
  [
    `${curl} --data grant_type=client_credentials --data client_id=$AZURE_CLIENT_ID`,
    "--data-urlencode scope=https://storage.azure.com/.default",
    "--data client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    `--data-urlencode client_assertion${assertion}`,
    "${AZURE_AUTHORITY_HOST}$AZURE_TENANT_ID/oauth2/v2.0/token",
  ].join(" ");

/** Logs in and reads the blob, again and again; prints what is in it, or by what number Entra refuses. */
const readAlways = `
while sleep 3; do
  said=$(${loginBy("@$AZURE_FEDERATED_TOKEN_FILE")})
  token=$(echo "$said" | sed -n 's/.*"access_token":"\\([^"]*\\)".*/\\1/p')
  if [ -n "$token" ]; then
    ${curl} --fail --header "Authorization: Bearer $token" --header 'x-ms-version: 2024-11-04' ${blob}
    case $? in 0) echo ;; 22) echo 'the blob is refused' ;; *) echo 'no answer' ;; esac
  else
    echo "$said" | grep -o 'AADSTS[0-9]*' || echo 'no answer'
  fi
done`;

const authority = { name: "azure-ca", mountPath: "/azure" };
/** What the cluster gives a pod of a declared service account. */
const identityVolume = "azure-identity-token";
export const tokenFile = `/var/run/secrets/azure/tokens/${identityVolume}`;

/**
 * A pod that reads the blob as its service account.
 *
 * @param copied of a pod that the cluster has given what it logs in with
 */
const reader = (name: string, serviceAccountName: string, copied?: Pod["spec"]): object => {
  const [container] = copied?.containers ?? [];
  const own = container?.volumeMounts?.filter((one) => one.name === identityVolume) ?? [];
  const volumes = copied?.volumes?.filter((one) => one.name === identityVolume) ?? [];
  return podOf(name, {
    serviceAccountName,
    volumes: [{ name: authority.name, configMap: { name: authority.name } }, ...volumes],
    containers: [
      {
        name: "read",
        image: agnhostImage,
        command: ["sh", "-c", readAlways],
        env: container?.env,
        volumeMounts: [authority, ...own],
      },
    ],
  });
};

const linesOf = async (cluster: RealCluster, name: string): Promise<string[]> =>
  (await logsOf(cluster, name)).trim().split("\n");

/** Starts a pod of the declared service account, and waits until it has read. */
export async function startReading(cluster: RealCluster, name: string): Promise<void> {
  // An API server that has just begun to serve refuses pods until it knows its policies.
  await eventually(300, cluster.signal, () => cluster.apply(reader(name, "app")));
  await eventually(300, cluster.signal, async () => {
    const lines = await linesOf(cluster, name);
    if (!lines.includes(order)) throw new Error(`${name} says: ${lines.slice(-3).join(", ")}`);
  });
}

/** What a pod was told, and how often. */
export const told = (name: string, lines: readonly string[]): string =>
  `${name} ${[...new Set(lines)].map((one) => `${lines.filter((line) => line === one).length} × ${one}`).join(", ")}`;

/**
 * How often a pod has read the blob, if nobody refused it since it first did. Entra goes on with the keys that it has
 * read; its stand-in reads them each time, also while they are written anew (AADSTS50166).
 */
export async function neverRefused(cluster: RealCluster, name: string): Promise<string> {
  const all = await linesOf(cluster, name);
  const lines = all.slice(all.indexOf(order));
  const allowed = [order, "no answer", "AADSTS50166"];
  const others = lines.filter((one) => !allowed.includes(one));
  expectSame(`${name} was told`, [...new Set(others)], []);
  return told(name, lines);
}

const reads: Claim = {
  sentence:
    "a pod logs in as its own identity, with nothing but its service account, and reads a blob",
  isGround: true,
  check: async (cluster) => {
    const accounts = ["app", "other"].map((name) => ({
      ...{ apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
    }));
    const data = { "ca.crt": readFileSync(cluster.authority, "utf8") };
    const metadata = { name: authority.name, namespace };
    const ca = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
    await cluster.apply(namespaceItself);
    await cluster.apply(ca, ...accounts);
    const since = Date.now();
    await startReading(cluster, "before");
    return `within ${Math.round((Date.now() - since) / 1000)} s: ${order}`;
  },
};

const readsNoOther: Claim = {
  sentence:
    "a pod of another service account, with all that the first one has, is refused by Entra, and no pod reaches the metadata service",
  check: async (cluster) => {
    const { spec } = await podNamed(cluster, "before");
    await cluster.apply(reader("other", "other", spec));
    await eventually(300, cluster.signal, async () => {
      expectSame(
        "the other pod was told",
        (await linesOf(cluster, "other")).at(-1),
        "AADSTS700213",
      );
    });
    const ask = `curl --silent --max-time 5 http://${metadataAddress}/metadata/versions || echo closed`;
    const exec = ["exec", "before", "--namespace", namespace, "--", "sh", "-c", ask];
    expectSame("the metadata service", (await cluster.kubectl(exec)).trim(), "closed");
    return "AADSTS700213: no federated credential has its subject";
  },
};

export const identityClaims: readonly Claim[] = [
  carriesNone,
  {
    sentence:
      "Azure's cloud provider, logged in by a token of its service account, makes a load balancer, at whose address pods answer",
    check: balances("web"),
  },
  pulls,
  pullsNoOther,
  reads,
  readsNoOther,
];
