import { nextKeys, only, type RotationState } from "../../../components/kubeadm/rotation";
import { certificateAuthorities, encryptionKeyGeneration, serviceAccountKey } from "../rotations";
import { threeByThree } from "./support/cluster-state";

const ofAuthorities = (cas?: RotationState) => certificateAuthorities({ ...threeByThree, cas });
const ofKeys = (encryptionKeys?: RotationState) =>
  encryptionKeyGeneration({ ...threeByThree, encryptionKeys });

it("says at each stage of a change of the CAs that it has not finished", () => {
  const trusted = nextKeys(only(1), 2);
  const signing = nextKeys(trusted, 2);

  expect(ofAuthorities()).toMatchObject({
    saw: "CA 1 signs, and no other is trusted",
    problems: [],
  });
  expect(ofAuthorities(trusted).problems).toMatchObject([
    { saw: "their change has not finished: CA 1 still signs, and CA 2 is trusted as well" },
  ]);
  expect(ofAuthorities(signing).problems).toMatchObject([
    { saw: "their change has not finished: CA 2 signs, and CA 1 is still trusted" },
  ]);
  expect(ofAuthorities(nextKeys(signing, 2))).toMatchObject({
    saw: "CA 2 signs, and no other is trusted",
    problems: [],
  });
});

it("names the key that encrypts all Secrets, or that none does, and is not asked where the outputs name none", () => {
  expect(ofKeys(only(2, [1]))).toMatchObject({ saw: "key 2 encrypts all of them", problems: [] });
  expect(ofKeys(only(0))).toMatchObject({
    saw: "none, as encryptionKeyGeneration 0 says",
    problems: [],
  });
  expect(ofKeys().notAsked).toBe("the outputs name none");
});

it("says at each stage of a change of the key that it has not finished", () => {
  const read = nextKeys(only(1), 2);
  const written = nextKeys(read, 2);

  expect(ofKeys(read).problems).toMatchObject([
    {
      saw: "its change has not finished: key 1 is still in use, and the API servers read key 2 as well",
    },
  ]);
  expect(ofKeys(written).problems).toMatchObject([
    {
      saw: "its change has not finished: key 2 took all of them, and the API servers still read key 1",
    },
  ]);
  expect(ofKeys(nextKeys(written, 2)).problems).toEqual([]);
});

const lookAtAccounts = (serviceAccountKeys?: RotationState) =>
  serviceAccountKey({ ...threeByThree, serviceAccountKeys });

it("says at each stage of a change of the key of service accounts that it has not finished", () => {
  const admitted = nextKeys(only(1), 2);
  const signing = nextKeys(admitted, 2);
  const well = (key: number) => ({
    saw: `service account key ${key} signs tokens, and those of no other are admitted`,
    problems: [],
  });

  expect(lookAtAccounts()).toMatchObject(well(1));
  expect(lookAtAccounts(admitted).problems).toMatchObject([
    {
      saw: "its change has not finished: service account key 1 still signs, and tokens of service account key 2 are admitted as well",
    },
  ]);
  expect(lookAtAccounts(signing).problems).toMatchObject([
    {
      saw: "its change has not finished: service account key 2 signs, and tokens of service account key 1 are still admitted",
    },
  ]);
  expect(lookAtAccounts(nextKeys(signing, 2))).toMatchObject(well(2));
});
