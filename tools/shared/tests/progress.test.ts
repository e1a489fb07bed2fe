import { Progress, spoken } from "../progress";

class Screen {
  text = "";
  constructor(readonly isTTY: boolean) {}
  readonly columns = 60;
  write(text: string): void {
    this.text += text;
  }
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

it.each([
  [4_400, "4 s"],
  [59_400, "59 s"],
  [60_000, "1 min"],
  [130_000, "2 min 10 s"],
])("says %d milliseconds as %s", (milliseconds, text) => {
  expect(spoken(milliseconds)).toBe(text);
});

it("says in a log what it waits for, again from time to time, and how long it took", () => {
  const screen = new Screen(false);
  const step = new Progress(screen).step("building etcd", "1 min");

  step.update("12 packages compiled");
  jest.advanceTimersByTime(50_000);
  step.done();

  expect(screen.text).toBe(
    [
      "building etcd (typically 1 min) …",
      "  still building etcd: 12 packages compiled (20 s, typically 1 min)",
      "  still building etcd: 12 packages compiled (40 s, typically 1 min)",
      "building etcd (50 s)",
      "",
    ].join("\n"),
  );
});

it("says nothing more of what has ended", () => {
  const screen = new Screen(false);
  new Progress(screen).step("a").done(false);
  const before = screen.text;

  jest.advanceTimersByTime(120_000);

  expect(screen.text).toBe(before);
});

it("keeps one living line on a terminal, no longer than the terminal is wide", () => {
  const screen = new Screen(true);
  new Progress(screen).step("x".repeat(100));

  jest.advanceTimersByTime(3_000);

  const lines = screen.text.split("\r\x1b[2K").slice(1);
  expect(lines.length).toBeGreaterThan(2);
  expect(new Set(lines)).toEqual(new Set(["x".repeat(59)]));
});

it("writes a line of its own above the living one", () => {
  const screen = new Screen(true);
  const progress = new Progress(screen);
  progress.step("waiting");
  screen.text = "";

  progress.line("hello");

  expect(screen.text).toBe("\r\x1b[2Khello\n\r\x1b[2Kwaiting");
});

it("ends a step whose work fails, without a word of success", async () => {
  const screen = new Screen(false);
  const work = new Progress(screen).during("a", () => Promise.reject(new Error("no")));

  await expect(work).rejects.toThrow("no");
  expect(screen.text).toBe("a …\n");
});
