import { chooseDistribution, distributionOf } from "../distributions";
import { Sources } from "../sources";

const silent = new Sources(new AbortController().signal);

it("mirrors what it is asked for, and nothing it does not know", async () => {
  const said = jest.fn();

  expect((await chooseDistribution("ubuntu-24.04", silent, said)).name).toBe("ubuntu-24.04");
  expect(said).not.toHaveBeenCalled();
  expect(() => distributionOf("windows")).toThrow(
    "there is no mirror for windows, expected ubuntu-24.04 or debian-13",
  );
});

it("says so when it cannot mirror what machines on Azure run", async () => {
  const said = jest.fn();
  class Nowhere extends Sources {
    override answers(): Promise<boolean> {
      return Promise.resolve(false);
    }
  }

  const chosen = await chooseDistribution(
    undefined,
    new Nowhere(new AbortController().signal),
    said,
  );

  expect(chosen.name).toBe("debian-13");
  expect(said).toHaveBeenCalledWith(expect.stringContaining("machines on Azure run Ubuntu 24.04"));
});
