import { checkout } from "../rehearsal";
import { stackSettings } from "../stack-config";
import { isCrowdedBy } from "./settle";

test("the real machines' stack has three control planes share two played processors with one each, and none with KVM", () => {
  const one = stackSettings(checkout, "machines");
  const three = stackSettings(checkout, "machines", { controlPlaneCount: 3 });

  expect(isCrowdedBy(three, "tcg", 2)).toBe(true);
  expect(isCrowdedBy(three, "tcg", 4)).toBe(false);
  expect(isCrowdedBy(three, "kvm", 2)).toBe(false);
  expect(isCrowdedBy(one, "tcg", 2)).toBe(false);
});

test("a stack that does not ignore kubeadm's check keeps two processors for each of its control planes", () => {
  expect(isCrowdedBy({ controlPlaneCount: 3 }, "tcg", 2)).toBe(false);
});
