import { secondsToFound } from "./founding";

const lines = (...words: string[]): string => words.join("\n");

test("founding begins when first boot has ended, and ends with the founder's own last step", () => {
  const log = lines(
    "2026-01-01T00:00:10Z first boot: packages: done after 4 s",
    "2026-01-01T00:00:25Z bootstrap: search: done after 20 s",
    "2026-01-01T00:00:30Z first boot: images: done after 20 s",
    "2026-01-01T00:01:15Z bootstrap: kubeadm init: done after 40 s",
    "2026-01-01T00:01:22Z bootstrap: secrets: done after 7 s",
    "2026-01-01T00:02:20Z bootstrap: node: done after 58 s",
  );
  expect(secondsToFound(log)).toBe(52);
});

test("a machine that has not founded has no time of founding, and no ratio to pass by", () => {
  expect(secondsToFound("2026-01-01T00:00:10Z first boot: packages: done after 4 s")).toBeNaN();
});
