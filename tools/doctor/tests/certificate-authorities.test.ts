import { nextKeys, only } from "../../../components/kubeadm/rotation";
import { certificateAuthorities } from "../certificate-authorities";
import { threeByThree } from "./support/cluster-state";

const look = (keys?: ReturnType<typeof only>) =>
  certificateAuthorities({ ...threeByThree, cas: keys });

it("says at each stage of a change of the CAs that it has not finished", () => {
  const trusted = nextKeys(only(1), 2);
  const signing = nextKeys(trusted, 2);

  expect(look()).toMatchObject({ saw: "CA 1 signs, and no other is trusted", problems: [] });
  expect(look(trusted).problems).toMatchObject([
    { saw: "their change has not finished: CA 1 still signs, and CA 2 is trusted as well" },
  ]);
  expect(look(signing).problems).toMatchObject([
    { saw: "their change has not finished: CA 2 signs, and CA 1 is still trusted" },
  ]);
  expect(look(nextKeys(signing, 2))).toMatchObject({
    saw: "CA 2 signs, and no other is trusted",
    problems: [],
  });
});
