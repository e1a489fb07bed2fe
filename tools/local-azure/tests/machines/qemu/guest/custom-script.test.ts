import { stepIn } from "../../../../machines/qemu/guest/custom-script";

test("the step under way is the last that began, of either half", () => {
  const log = [
    "2026-01-01T00:00:00Z first boot: tools: begins",
    "2026-01-01T00:00:09Z first boot: tools: done after 9 s",
    "2026-01-01T00:00:10Z bootstrap: kubeadm init: begins",
    "[init] Using Kubernetes version",
  ].join("\n");
  expect(stepIn(log)).toBe("bootstrap: kubeadm init");
  expect(stepIn("nothing yet")).toBeUndefined();
});
