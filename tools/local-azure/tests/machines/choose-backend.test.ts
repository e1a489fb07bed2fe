import { needOneVcpuEach } from "../../machines/choose-backend";
import { stackSettings } from "../../rehearsal/stack-config";
import { checkout } from "../../../shared/checkout";

test("the real machines' stack has three control planes share two emulated processors with one each, and none with KVM", () => {
  const one = stackSettings(checkout, "machines");
  const three = stackSettings(checkout, "machines", { controlPlaneCount: 3 });

  expect(needOneVcpuEach(three, "tcg", 2)).toBe(true);
  expect(needOneVcpuEach(three, "tcg", 4)).toBe(false);
  expect(needOneVcpuEach(three, "kvm", 2)).toBe(false);
  expect(needOneVcpuEach(one, "tcg", 2)).toBe(false);
});

test("a stack that does not ignore kubeadm's check keeps two processors for each of its control planes", () => {
  expect(needOneVcpuEach({ controlPlaneCount: 3 }, "tcg", 2)).toBe(false);
});
