import { chooseDistribution, distributionOf } from "../distributions";
import { answering } from "./support/fixture";

const nowhere = answering(/^nowhere$/);

it("mirrors what it is asked for, and nothing it does not know", async () => {
  const said = jest.fn();

  expect((await chooseDistribution("ubuntu-24.04", nowhere, said)).name).toBe("ubuntu-24.04");
  expect(said).not.toHaveBeenCalled();
  expect(() => distributionOf("windows")).toThrow(
    "there is no mirror for windows, expected ubuntu-24.04 or debian-13",
  );
});

it("says so when it cannot mirror what machines on Azure run", async () => {
  const said = jest.fn();

  const chosen = await chooseDistribution(undefined, nowhere, said);

  expect(chosen.name).toBe("debian-13");
  expect(said).toHaveBeenCalledWith(expect.stringContaining("machines on Azure run Ubuntu 24.04"));
});
