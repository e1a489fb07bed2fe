import { agnhostImage } from "../../../mirror/images/wanted-images";
import { ageServiceAccountKey } from "../../aged-service-account-key";
import { succeeded, unchanged } from "../../local-cloud";
import { type Claim, eventually, expectSaid, expectSame } from "../claim";
import type { RealCluster } from "../real-cluster";
import { stage } from "../writer";

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

export const keyOf = (token: string): string =>
  (JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString()) as { kid: string }).kid;

/** A pod that asks the API once a second, and the id of the key that its token is signed by. */
async function startAsking(cluster: RealCluster, name: string): Promise<string> {
  await cluster.apply(podOf(name));
  await eventually(300, cluster.signal, async () => {
    if (!(await answersTo(cluster, name)).includes("200")) throw new Error("no answer yet");
  });
  return keyOf(await cluster.kubectl(["exec", name, "--", "cat", `${secrets}/token`]));
}

const answersTo = async (cluster: RealCluster, name: string): Promise<string[]> =>
  (await cluster.kubectl(["logs", name])).trim().split("\n");

/** What a pod has been answered, if it never was that nobody knows its token. */
async function neverRefused(cluster: RealCluster, name: string): Promise<string> {
  const answers = await answersTo(cluster, name);
  expectSame(`answers 401 to ${name}`, answers.filter((code) => code === "401").length, 0);
  // While the API server starts anew nobody answers.
  return told(name, answers);
}

/** What a pod was told, and how often. */
export const told = (name: string, lines: readonly string[]): string =>
  `${name} ${[...new Set(lines)].map((one) => `${lines.filter((line) => line === one).length} × ${one}`).join(", ")}`;

export const serviceAccountKeyClaims: readonly Claim[] = (() => {
  let first: string;
  return [
    {
      sentence:
        "a first `pulumi up` with another `serviceAccountKeyGeneration` has the API server admit both keys, and a pod that asks once a second is never refused",
      isGround: true,
      check: async (cluster) => {
        first = await startAsking(cluster, "before");
        await cluster.configure({ serviceAccountKeyGeneration: 2 });
        const seen = await stage(cluster, "admit tokens of service account key 2");
        return `${await neverRefused(cluster, "before")}; ${seen}`;
      },
    },
    {
      sentence:
        "a second one has new tokens signed by the new key, and neither the pod of before nor a new one is refused",
      isGround: true,
      check: async (cluster) => {
        const seen = await stage(cluster, "every token signed by service account key 2");
        const second = await startAsking(cluster, "after");
        if (second === first) throw new Error("a new pod's token is signed by the old key");
        const pods = [await neverRefused(cluster, "before"), await neverRefused(cluster, "after")];
        return `${pods.join("; ")}; ${seen}`;
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
        "after them it has the API server forget the old key: a token of it is refused, and the pod with a new one is not",
      check: async (cluster) => {
        await ageServiceAccountKey(cluster.stack, 36);
        const seen = await stage(cluster, "no API server admit tokens of service account key 1");
        await eventually(120, cluster.signal, async () => {
          if (!(await answersTo(cluster, "before")).includes("401")) throw new Error("admitted");
        });
        const said = await neverRefused(cluster, "after");
        unchanged(await cluster.up());
        return `${said}; ${seen}`;
      },
    },
  ];
})();
