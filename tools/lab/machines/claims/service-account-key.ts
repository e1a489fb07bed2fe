import { agnhostImage } from "../../../mirror/images/wanted-images";
import { ageServiceAccountKey } from "../../aged-service-account-key";
import { succeeded, unchanged } from "../../local-cloud";
import { type Claim, eventually, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { stage } from "../workloads";
import {
  balances,
  loginBy,
  namespace,
  neverRefused as neverRefusedByEntra,
  startReading,
  told,
  tokenFile,
} from "./identity";

const secrets = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Prints once a second what the API answers to the token that the pod has then. */
const askAlways = [
  "while sleep 1; do",
  "curl --silent --output /dev/null --max-time 10 --write-out '%{http_code}\\n'",
  `--cacert ${secrets}/ca.crt --header "Authorization: Bearer $(cat ${secrets}/token)"`,
  "https://kubernetes.default.svc/api; done",
].join(" ");

const podOf = (name: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "default" },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: "ask", image: agnhostImage, command: ["sh", "-c", askAlways] }],
  },
});

const keyOf = (token: string): string =>
  (JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString()) as { kid: string }).kid;

/** A pod that asks the API once a second, and the id of the key that its token is signed by. */
async function startAsking(cluster: RealCluster, name: string): Promise<string> {
  // An API server that has just begun to serve refuses pods until it knows its policies.
  await eventually(300, cluster.signal, () => cluster.apply(podOf(name)));
  await eventually(300, cluster.signal, async () => {
    if (!(await answersTo(cluster, name)).includes("200")) throw new Error("no answer yet");
  });
  return keyOf(await cluster.kubectl(["exec", name, "--", "cat", `${secrets}/token`]));
}

const answersTo = async (cluster: RealCluster, name: string): Promise<string[]> =>
  (await cluster.kubectl(["logs", name])).trim().split("\n");

/** What a pod that asks the API has been answered, if it never was that nobody knows its token. */
async function neverRefusedByApi(cluster: RealCluster, name: string): Promise<string> {
  const answers = await answersTo(cluster, name);
  expectSame(`answers 401 to ${name}`, answers.filter((code) => code === "401").length, 0);
  // While the API server starts anew nobody answers.
  return told(name, answers);
}

/** What both pods of this name saw: the one that asks the API, and the one that reads a blob. */
const neverRefused = async (cluster: RealCluster, name: string): Promise<string> =>
  `${await neverRefusedByApi(cluster, name)}; ${await neverRefusedByEntra(cluster, name)}`;

/** In the namespace of the pods that log in at Entra. */
const inNamespace = (cluster: RealCluster, pod: string, ...command: string[]): Promise<string> =>
  cluster.kubectl(["exec", pod, "--namespace", namespace, "--", ...command]);

/** A token for Entra that is valid for a day: a kubelet has renewed a pod's own one after 48 minutes. */
async function tokenOfDay(cluster: RealCluster): Promise<string> {
  const token = await cluster.kubectl([
    ...["create", "token", "app", "--namespace", namespace],
    ...["--audience", "api://AzureADTokenExchange", "--duration", "24h"],
  ]);
  return token.trim();
}

/** After those of identities, whose pod `before` reads a blob. */
export const serviceAccountKeyClaims: readonly Claim[] = (() => {
  let first: string;
  let old: string;
  return [
    {
      sentence:
        "while API servers and Entra learn another key of service accounts, by a first `pulumi up` with another `serviceAccountKeyGeneration`, neither a pod that asks the API once a second nor one that reads a blob is refused",
      isGround: true,
      check: async (cluster) => {
        first = await startAsking(cluster, "before");
        old = await tokenOfDay(cluster);
        await cluster.configure({ serviceAccountKeyGeneration: 2 });
        const seen = await stage(cluster, "admit tokens of service account key 2");
        return `${await neverRefused(cluster, "before")}; ${seen}`;
      },
    },
    {
      sentence:
        "once the new key signs, by a second one, new pods ask and log in by it, the old ones go on, and another balancer is made",
      isGround: true,
      check: async (cluster) => {
        const seen = await stage(cluster, "every token signed by service account key 2");
        const second = await startAsking(cluster, "after");
        await startReading(cluster, "after");
        const forEntra = await inNamespace(cluster, "after", "cat", tokenFile);
        if (second === first || keyOf(forEntra) === keyOf(old)) {
          throw new Error("a new pod's token is signed by the old key");
        }
        const pods = [await neverRefused(cluster, "before"), await neverRefused(cluster, "after")];
        return `${pods.join("; ")}; ${await balances("later")(cluster)}; ${seen}`;
      },
    },
    {
      sentence: "a third one, before 36 hours have gone by, changes nothing and says until when",
      check: async (cluster) => {
        const { stdout } = succeeded(await cluster.up());
        expectSaid(stdout, ["pods may have tokens of service account key 1 until 20"]);
      },
    },
    {
      sentence:
        "36 hours later the API server and Entra forget the old key: a token of it is refused, and the pods with a new one go on",
      check: async (cluster) => {
        const byOld = () => inNamespace(cluster, "after", "sh", "-c", loginBy(`=${old}`));
        if (!(await byOld()).includes("access_token"))
          throw new Error("the old key is gone before");
        await ageServiceAccountKey(cluster.stack, 36);
        const seen = await stage(cluster, "no API server admit tokens of service account key 1");
        await eventually(120, cluster.signal, async () => {
          if (!(await answersTo(cluster, "before")).includes("401")) throw new Error("admitted");
          if (!(await byOld()).includes("AADSTS700027"))
            throw new Error("Entra admits the old key");
        });
        const said = await neverRefused(cluster, "after");
        unchanged(await cluster.up());
        return `${said}; ${seen}`;
      },
    },
  ];
})();
