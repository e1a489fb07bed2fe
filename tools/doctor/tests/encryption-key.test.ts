import { nextKeys, only, RotationState } from "../../../components/kubeadm/rotation";
import { encryptionKeyGeneration } from "../encryption-key";
import { threeByThree } from "./support/cluster-state";

const look = (encryptionKeys: RotationState | undefined) =>
  encryptionKeyGeneration({ ...threeByThree, encryptionKeys });
const problem = (keys: RotationState) => look(keys).problems.map(({ saw }) => saw);

it("names the key that encrypts all Secrets, or that none does", () => {
  expect(look(only(2, [1]))).toMatchObject({ saw: "key 2 encrypts all of them", problems: [] });
  expect(look(only(0))).toMatchObject({
    saw: "none, as encryptionKeyGeneration 0 says",
    problems: [],
  });
});

it("says at each stage of a change that it has not finished", () => {
  const read = nextKeys(only(1), 2);
  const written = nextKeys(read, 2);

  expect(problem(read)).toEqual([
    "its change has not finished: key 1 is still in use, and the API servers read key 2 as well",
  ]);
  expect(problem(written)).toEqual([
    "its change has not finished: key 2 took all of them, and the API servers still read key 1",
  ]);
  expect(problem(nextKeys(written, 2))).toEqual([]);
});

it("is not asked where the operator sees to it", () => {
  expect(look(undefined).notAsked).toBe("the outputs name none");
});
