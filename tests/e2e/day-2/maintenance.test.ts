import { setTimeout as wait } from "node:timers/promises";

import {
  asPlanned,
  fewAddOns,
  LocalCloud,
  refused,
  succeeded,
  unchanged,
} from "../../../tools/lab/local-cloud";

jest.setTimeout(1_800_000);

const small = { ...fewAddOns, drainMinutes: 1 };
const pool = (size: string) => ({ workerPools: [{ name: "workers", count: 2, size }] });
const [one, two] = ["zoned-dev-workers-1", "zoned-dev-workers-2"];

describe("a cluster whose machines Azure maintains", () => {
  let cloud: LocalCloud;
  beforeAll(async () => {
    cloud = await LocalCloud.start("dev", { ...small, ...pool("Standard_B2s") });
    asPlanned(await cloud.stack.up());
  });
  afterAll(() => cloud?.stop());

  const turns = ["configmap", "zoned-maintenance", "--namespace", "kube-system"];
  const isDown = async (machine: string, value: string | null) =>
    cloud.kubectl(
      ...["patch", ...turns, "--type", "merge"],
      ...["--patch", JSON.stringify({ data: { [machine]: value } })],
    );
  const down = () => cloud.kubectl("get", ...turns, "--output", "jsonpath={.data}");
  const readiness = async (machine: string): Promise<string> =>
    cloud
      .kubectl(
        ...["get", "node", machine, "--output"],
        'jsonpath={.status.conditions[?(@.type=="Ready")].status}',
      )
      .catch(() => "gone");
  const until = async (machine: string, isSo: (status: string) => boolean) => {
    for (let tries = 0; !isSo(await readiness(machine)); tries++) {
      if (tries > 300) throw new Error(`Node ${machine}: Ready is ${await readiness(machine)}`);
      await wait(500);
    }
  };

  it("has none taken down by an update while another one is, and goes on when that is back", async () => {
    await isDown(two, "Redeploy 2999-01-01T00:00:00Z");
    await cloud.stack.configure({ ...small, ...pool("Standard_B2ms") });

    expect(refused(await cloud.stack.up())).toMatch(
      /zoned-dev-workers-1 was not touched[^]*zoned-dev-workers-2 is down for Redeploy, at most until 2999/,
    );
    expect(await readiness(one)).toBe("True");
    await isDown(two, null);
    succeeded(await cloud.stack.up());

    expect(await down()).toBe("");
  });

  it("has what machines write there stay, and no update changes it", async () => {
    const value = "Reboot 2020-01-01T00:00:00Z";
    await isDown(two, value);

    unchanged(await cloud.stack.up("--refresh"));

    expect(JSON.parse(await down())).toEqual({ [two]: value });
  });

  it("has a machine redeployed when its time has come, and another one deleted, which the next update makes anew", async () => {
    await cloud.event("workers-1", "Redeploy", 0);
    await until(one, (status) => status !== "True");
    await until(one, (status) => status === "True");

    await cloud.event("workers-2", "Terminate", 0);
    // Without a cloud provider its Node stays, and is heard of no more.
    await until(two, (status) => status !== "True");
    succeeded(await cloud.stack.up("--refresh"));

    await until(two, (status) => status === "True");
  });
});
