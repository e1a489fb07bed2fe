import { serveKubernetesObjects } from "../../support/kubernetes-api";
import { checkSnapshot } from "../../../components/plan/wanted-snapshot";
import { etcdOf, minors } from "../../../components/versions";
import { account } from "../../../tools/local-azure/arm/resources/resource";
import { loginToken } from "../../../tools/local-azure/machines/identity-token";
import { allowHttp, withBlobs } from "../../../tools/local-azure/tests/support/arm/blobs";
import {
  group,
  roleDefinition,
  valid,
} from "../../../tools/local-azure/tests/support/arm/valid-resources";
import { Recorder } from "../../support/record";

const now = "2026-11-23T17:41:28.123Z";
const [current, previous] = minors;
const [container] = valid.container;
const reader = roleDefinition("2a2b9908-6ea1-4ae2-8e65-a410df84e7d1");
const older = "20261122T170000Z-41.db";
const newer = "20261123T170000Z-42.db";

interface Scene {
  readonly restoreFrom: string;
  /** Snapshots in the container; no container where there is nothing. */
  readonly blobs?: readonly string[];
  /** Whether the login has a role that reads blobs. */
  readonly reads?: boolean;
  readonly isByChoice?: true;
  /** What the cluster says of the last snapshot, if there is an API. */
  readonly reported?: { readonly where?: string; readonly name?: string; readonly etcd?: string };
  /** What the snapshots say that they are of. */
  readonly etcd?: string;
  readonly skipHealthCheckUntil?: string;
  readonly now?: string;
}

/** What is said of a snapshot that is to be restored, by the local Azure's own Blob service. */
const ask = ({ restoreFrom, blobs, reads = true, isByChoice, reported, ...more }: Scene) =>
  withBlobs(async ({ arm, endpoint, upload, grant }) => {
    await allowHttp(arm);
    await grant();
    for (const name of blobs ?? []) {
      const metadata: Record<string, string> = more.etcd === undefined ? {} : { etcd: more.etcd };
      await upload(name, "snapshot", metadata);
    }
    if (blobs === undefined) await arm.delete(container);
    if (reads) {
      const id = `${group}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-000000000009`;
      await arm.put(id, { principalId: account.objectId, roleDefinitionId: reader });
    }
    await Recorder.start({
      calls: {
        "azure-native:authorization:getClientToken": ({ endpoint }) => ({
          token: loginToken(endpoint),
        }),
      },
    });
    const where = `${endpoint}/etcd`;
    const kubeconfig = await serveKubernetesObjects(() => [200, { data: { where, ...reported } }]);
    const { problems, warnings } = await checkSnapshot({
      settings: {
        clusterName: "zoned-test",
        etcdBackups: { container, endpoint, every: "1h" },
        kubernetesVersion: `${previous.minor}.3`,
        resourceManagerEndpoint: "https://management.azure.com",
        restoreFrom,
        skipHealthCheckUntil: more.skipHealthCheckUntil ?? "",
      },
      initialization: { isRestoring: true, isByChoice },
      kubeconfig: reported && kubeconfig,
      now: more.now ?? now,
    });
    return { problems, warnings };
  });

const both = [`zoned-test/${older}`, `zoned-test/${newer}`];
const quiet = { problems: [], warnings: [] };

it("restores what the container has, also a cluster that is not lost", async () => {
  for (const restoreFrom of ["latest", older]) {
    expect(await ask({ restoreFrom, blobs: both, isByChoice: true })).toEqual(quiet);
  }
});

it.each<[string, Scene, string]>([
  [
    "a snapshot that is not there",
    { restoreFrom: "20261123T180000Z-43.db", blobs: both },
    `the newest are: ${older}, ${newer}. Nothing was changed; name one of them: pulumi config set restoreFrom ${newer}`,
  ],
  [
    "the latest of none, whatever others have",
    { restoreFrom: "latest", blobs: [`zoned-prod/${older}`, "zoned-test/notes.txt"] },
    "the newest are: none",
  ],
  [
    "one beside many, of which it names the newest five",
    {
      restoreFrom: newer,
      blobs: [1, 2, 3, 4, 5, 6].map((day) => `zoned-test/2026110${day}T000000Z-1.db`),
    },
    `the newest are: ${[2, 3, 4, 5, 6].map((day) => `2026110${day}T000000Z-1.db`).join(", ")}. `,
  ],
  ["one of a container that is not there", { restoreFrom: older }, "the newest are: none"],
])("refuses %s, whether or not the cluster is lost", async (_, scene, says) => {
  for (const isByChoice of [true, undefined] as const) {
    expect(await ask({ ...scene, isByChoice })).toEqual({
      problems: [expect.stringContaining(says)],
      warnings: [],
    });
  }
});

it("refuses a snapshot that the cluster's etcd cannot read, before a control plane is deleted", async () => {
  const etcd = etcdOf(`${current.minor}.0`).split("-")[0]!;
  const says = new RegExp(
    `snapshot ${newer} is of etcd ${etcd}, and Kubernetes ${previous.minor}.3 runs etcd 3.6, .*Nothing was changed`,
  );
  const refusal = { problems: [expect.stringMatching(says)], warnings: [] };

  expect(await ask({ restoreFrom: "latest", blobs: both, etcd, isByChoice: true })).toEqual(
    refusal,
  );
  const reported = { name: newer, etcd };
  expect(await ask({ restoreFrom: newer, blobs: both, reads: false, reported })).toEqual(refusal);
  for (const readable of ["3.6.99", "3.5.9"]) {
    expect(await ask({ restoreFrom: newer, blobs: both, etcd: readable })).toEqual(quiet);
  }
});

it("knows which are the newest in whatever order and on however many pages storage lists them", async () => {
  const { fetch } = globalThis;
  jest.spyOn(globalThis, "fetch").mockImplementation(async (url, init) => {
    const isFirst = !String(url).includes("&marker=more");
    const answer = await fetch(String(url).replace("&marker=more", "&marker="), init);
    const text = await answer.text();
    const [one, other] = text.match(/<Blob>.*?<\/Blob>/gs) ?? [];
    const page = isFirst ? `${other}<NextMarker>more</NextMarker>` : `${one}<NextMarker />`;
    return new Response(other === undefined ? text : page, answer);
  });

  const { problems } = await ask({ restoreFrom: "20261123T180000Z-43.db", blobs: both });
  jest.restoreAllMocks();

  expect(problems).toEqual([expect.stringContaining(`the newest are: ${older}, ${newer}.`)]);
});

describe("where the login may not read the container", () => {
  const scene = { restoreFrom: newer, blobs: both, reads: false };
  const unsure =
    /snapshot 20261123T170000Z-42.db of cluster zoned-test is in .* is not known: .*403 AuthorizationPermissionMismatch/;

  it("restores a cluster that is lost, and says what nobody knows", async () => {
    expect(await ask(scene)).toEqual({
      problems: [],
      warnings: [expect.stringMatching(unsure)],
    });
  });

  it("refuses to give up one that is not lost, unless its operator knows", async () => {
    const chosen = { ...scene, isByChoice: true } as const;

    expect(await ask(chosen)).toEqual({
      problems: [expect.stringMatching(unsure)],
      warnings: [],
    });
    const [problem] = (await ask(chosen)).problems;
    expect(problem).toContain(`Storage Blob Data Reader" --assignee LOGIN --scope ${container}`);
    const [, until = ""] = /set skipHealthCheckUntil (\w+)/.exec(problem!) ?? [];
    const soon = { ...chosen, skipHealthCheckUntil: until, now: "2026-11-23T18:11:28.123Z" };
    expect((await ask(soon)).problems).toEqual([]);
  });

  it("believes the control planes of the last one that they saved, and of no other", async () => {
    const chosen = { ...scene, isByChoice: true } as const;

    expect(await ask({ ...chosen, reported: { name: newer } })).toEqual(quiet);
    expect(await ask({ ...chosen, restoreFrom: "latest", reported: { name: newer } })).toEqual(
      quiet,
    );
    for (const reported of [{ name: older }, { name: newer, where: "elsewhere" }, {}]) {
      expect((await ask({ ...chosen, reported })).problems).toHaveLength(1);
    }
  });
});

it("asks nobody where nothing is restored", async () => {
  const settings = { restoreFrom: "latest" } as never;

  expect(await checkSnapshot({ settings, initialization: {}, kubeconfig: undefined, now })).toEqual(
    quiet,
  );
});
