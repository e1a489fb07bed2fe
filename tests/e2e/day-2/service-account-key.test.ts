import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

import { ageServiceAccountKey } from "../../../tools/lab/aged-service-account-key";
import { asPlanned, fewAddOns, LocalCloud, unchanged } from "../../../tools/lab/local-cloud";

const settings = {
  ...fewAddOns,
  controlPlaneCount: 3,
  workerPools: [{ name: "workers", count: 1, size: "Standard_B2as_v2" }],
};
const changing = { ...settings, serviceAccountKeyGeneration: 2 };

const legacySecret = {
  apiVersion: "v1",
  kind: "Secret",
  type: "kubernetes.io/service-account-token",
  metadata: { name: "legacy", annotations: { "kubernetes.io/service-account.name": "default" } },
};

describe("another key of service accounts for a living cluster", () => {
  let cloud: LocalCloud;
  /** Tokens by what they were issued as. */
  const tokens = new Map<string, string>();
  const refused: string[] = [];
  let isOver = false;
  let watch: Promise<void>;

  /** What the API says of a token: 401 where nobody's, 403 where it is one that may not read Nodes. */
  const statusOf = (token: string) => cloud.byToken(token, "/api/v1/nodes");

  const issue = async (name: string) =>
    tokens.set(name, (await cloud.kubectl("create", "token", "default")).trim());

  const legacyToken = async (): Promise<string> => {
    const path = "jsonpath={.data.token}";
    for (let tries = 0; tries < 60; tries++, await wait(500)) {
      const data = await cloud.kubectl("get", "secret", "legacy", "--output", path);
      if (data !== "") return Buffer.from(data, "base64").toString();
    }
    throw new Error("the controller manager has put no token into the Secret");
  };

  /** Updates; names of the machines whose step was ordered. */
  const update = async () => {
    const before = (await cloud.requests()).length;
    const { stdout } = asPlanned(await cloud.stack.up());
    const stepped = (await cloud.requests())
      .slice(before)
      .filter(({ method, id }) => method === "PUT" && id.endsWith("/extensions/bootstrap"))
      .map(({ id }) => /zoned-dev-([^/]+)/.exec(id)![1]);
    return { stdout, stepped };
  };

  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", settings);
    asPlanned(await cloud.stack.up());
    const file = join(cloud.state, "legacy.json");
    writeFileSync(file, JSON.stringify(legacySecret));
    await cloud.kubectl("create", "--filename", file);
    tokens.set("in a Secret", await legacyToken());
    await issue("before");
    watch = (async () => {
      while (!isOver) {
        for (const [name, token] of tokens) {
          // While the API server starts anew nobody answers.
          const status = await statusOf(token).catch(() => undefined);
          if (status === 401) refused.push(`${name}, at ${new Date().toISOString()}`);
        }
        await wait(1000);
      }
    })();
    await cloud.stack.configure(changing);
  });
  afterAll(async () => {
    isOver = true;
    await watch;
    await cloud?.stop();
  });

  it.each([
    ["admitted", /admit tokens of service account key 2.* Run pulumi up again/],
    ["signing", /every token signed by service account key 2\. Run pulumi up again/],
  ])("is %s after one update, which touches control planes alone", async (stage, says) => {
    const { stdout, stepped } = await update();

    expect(stdout).toMatch(says);
    expect(stepped).toEqual(["cp-1", "cp-2", "cp-3"]);
    await issue(stage);
  });

  it("leaves the old one admitted as long as pods or Secrets may have tokens of it, and says so", async () => {
    const early = await update();
    expect(early.stdout).toMatch(/pods may have tokens of service account key 1 until 20/);
    expect(early.stepped).toEqual([]);

    await ageServiceAccountKey(cloud.stack, 36);
    const held = await update();

    expect(held.stdout).toMatch(/key 1 that never end are in Secrets \(default\/legacy\)/);
    expect(held.stepped).toEqual([]);
  });

  it("has had no token refused until then, and the old one's are by the last update, after which nothing follows", async () => {
    await cloud.kubectl("delete", "secret", "legacy");
    tokens.delete("in a Secret");
    isOver = true;
    await watch;
    expect(refused).toEqual([]);

    const { stdout, stepped } = await update();

    expect(stdout).toMatch(/no API server admit tokens of service account key 1 any more$/m);
    expect(stepped).toEqual(["cp-1", "cp-2", "cp-3"]);
    const says = await Promise.all([...tokens].map(async ([, token]) => statusOf(token)));
    expect(Object.fromEntries([...tokens.keys()].map((name, at) => [name, says[at]]))).toEqual({
      before: 401,
      admitted: 401,
      signing: 403,
    });
    unchanged(await cloud.stack.up("--skip-preview"));
  });
});
