import * as cluster from "../../../components/cluster/roll-out";
import { RollOut } from "../../../components/add-ons/roll-out";
import { Recorder } from "../../support/record";
import { checkout } from "../../../tools/shared/checkout";

/** What the engine's plugin makes of the resource's own text, and what it waits for instead of waiting. */
async function provider() {
  const recorder = await Recorder.start();
  const target = { kind: "DaemonSet", namespace: "kube-system", name: "canal" } as const;
  new RollOut(
    "roll-out",
    { targets: [{ ...target, spec: { paused: false } }], runs: ["a/1"], kubeconfig: "k" },
    { transformations: [recorder.watch] },
  );
  const { inputs } = await recorder.only("pulumi-nodejs:dynamic/zoned:RollOut");
  const { __provider: text, ...own } = inputs;
  type Operation = (...args: any[]) => Promise<any>;
  const module = {
    exports: {} as { handler: () => Record<"create" | "update" | "diff", Operation> },
  };
  const cwd = process.cwd();
  process.chdir(checkout);
  try {
    new Function("exports", "require", text)(module.exports, require);
    return { target, inputs: own, ...module.exports.handler() };
  } finally {
    process.chdir(cwd);
  }
}

let awaited: unknown[];
beforeEach(() => {
  awaited = [];
  jest
    .spyOn(cluster, "awaitRollOuts")
    .mockImplementation(async (...args) => void awaited.push(args));
});
afterEach(() => jest.restoreAllMocks());

it("waits when it is created, and again when it is for something else", async () => {
  const { create, update, inputs, target } = await provider();

  expect(await create(inputs)).toEqual({ id: "awaited", outs: inputs });
  expect(await update("awaited", inputs, inputs)).toEqual({ outs: inputs });
  expect(awaited).toEqual([
    ["k", [target]],
    ["k", [target]],
  ]);
});

it("changes for another machine, run or specification, and for no other kubeconfig", async () => {
  const { diff, inputs } = await provider();

  expect(await diff("awaited", inputs, { ...inputs, kubeconfig: "l" })).toEqual({
    changes: false,
  });
  expect(await diff("awaited", inputs, { ...inputs, awaitedFor: "else" })).toEqual({
    changes: true,
  });
});

it("fails by its message alone, so that the next update waits again", async () => {
  const { create, inputs } = await provider();
  jest.spyOn(cluster, "awaitRollOuts").mockRejectedValue(new Error("it has stood still"));

  const error = await create(inputs).catch((thrown: Error) => thrown);

  expect(`${error.stack}${error.message}`).toBe("it has stood still");
});
