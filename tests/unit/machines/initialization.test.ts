import { secondsToInitialize } from "../../machines/claims/initialization";

const lines = (...words: string[]): string => words.join("\n");

test("initialization begins when first boot has ended, and ends with the initial control plane's own last step", () => {
  const log = lines(
    "2026-01-01T00:00:10Z first boot: packages: done after 4 s",
    "2026-01-01T00:00:25Z bootstrap: search: done after 20 s",
    "2026-01-01T00:00:30Z first boot: images: done after 20 s",
    "2026-01-01T00:01:15Z bootstrap: kubeadm init: done after 40 s",
    "2026-01-01T00:01:22Z bootstrap: secrets: done after 7 s",
    "2026-01-01T00:02:20Z bootstrap: node: done after 58 s",
  );
  expect(secondsToInitialize(log)).toBe(52);
});

test("a machine that has not initialized has no time of initialization, and no ratio to pass by", () => {
  expect(
    secondsToInitialize("2026-01-01T00:00:10Z first boot: packages: done after 4 s"),
  ).toBeNaN();
});
