import { disturb, type Kill } from "../../tools/lab/faults/cases/disturbances";
import { Life } from "../../tools/lab/faults/life";
import { small, firstUp as whole } from "../../tools/lab/faults/cases/scenarios";
import { conclude } from "../../tools/lab/faults/trial";
import { testFolder } from "../support/test-folder";

const firstUp = { ...whole, settings: small };

const ofAzure = (method: string, type: string, stage: Kill["at"]["stage"]): Kill["at"] => ({
  ...{ method, stage },
  id: `/${type}$`,
});

/** One update after another of the same cluster, each cut off later than the one before it. */
describe("a first update in which Azure is busy and one process after another is killed", () => {
  let life: Life;
  beforeAll(() => {
    const binaries = process.env["ZONED_BINARIES"];
    if (!binaries) throw new Error("ZONED_BINARIES names no folder of built tools; run npm test");
    const state = testFolder();
    life = new Life(state, firstUp.stack, binaries, new AbortController().signal);
  });
  afterAll(() => life?.remove());

  it("meets three passing faults of Azure by asking again", async () => {
    await life.begin();
    const network = "virtualNetworks/zoned-dev-vnet$";
    await life.fault({ method: "PUT", id: network, status: 429, retryAfter: 1 });
    await life.fault({ method: "PUT", id: "natGateways/", lost: "answer" });
    await life.fault({ method: "PUT", id: "loadBalancers/", status: 503 });

    const engine: Kill = {
      kill: "engine",
      at: ofAzure("PUT", "networkInterfaces/zoned-dev-cp-1-nic", "accepted"),
    };
    const { happened, flaws } = await disturb(life, firstUp, engine);

    expect({ happened, flaws }).toEqual({ happened: true, flaws: [] });
    const busy = life.requests().filter(({ status }) => status === 429 || status === 503);
    expect(busy).toHaveLength(2);
  });

  it.each<[string, Kill]>([
    [
      "the provider when Azure has accepted a machine",
      { kill: "provider", at: ofAzure("PUT", "virtualMachines/zoned-dev-cp-1", "accepted") },
    ],
    [
      "the engine when an object is in the cluster",
      { kill: "engine", at: { method: "create", id: "::flannel-config$", stage: "accepted" } },
    ],
  ])("is cut off by killing %s", async (_, kill) => {
    const { happened, flaws } = await disturb(life, firstUp, kill);

    expect({ happened, flaws }).toEqual({ happened: true, flaws: [] });
  });

  it("is brought to its end by one npm start, with everything as it has to be", async () => {
    expect(await conclude(life, firstUp, {})).toEqual({ commands: 1, isStuck: false, flaws: [] });
    const gone = life.requests().filter(({ method }) => method === "DELETE");
    expect(gone).toEqual([]);
  });
});
