import { refreshed } from "../../../../../../local-azure/plugins/kubernetes/operations/refresh";

const container = (name: string, image: string, more = {}) => ({ name, image, ...more });

it.each([
  {
    what: "a quantity that the server writes its own way",
    input: { cpu: "0.5" },
    before: { cpu: "500m" },
    now: { cpu: "500m" },
    becomes: { cpu: "0.5" },
  },
  {
    what: "an empty map that the server leaves out",
    input: { a: {}, b: "1" },
    before: { b: "1" },
    now: { b: "1", status: "x" },
    becomes: { a: {}, b: "1" },
  },
  {
    what: "a field that somebody added",
    input: { a: "1" },
    before: { a: "1" },
    now: { a: "1", b: "2" },
    becomes: { a: "1" },
  },
  {
    what: "a value that somebody changed",
    input: { a: "1" },
    before: { a: "1" },
    now: { a: "2" },
    becomes: { a: "2" },
  },
  {
    what: "a value that somebody removed",
    input: { labels: { a: "1", b: "2" } },
    before: { labels: { a: "1", b: "2" } },
    now: { labels: { a: "1" } },
    becomes: { labels: { a: "1" } },
  },
  {
    what: "a container that was injected beside its own",
    input: { containers: [container("main", "a")] },
    before: { containers: [container("main", "a", { policy: "Always" })] },
    now: { containers: [container("side", "x"), container("main", "a", { policy: "Always" })] },
    becomes: { containers: [container("main", "a")] },
  },
  {
    what: "a container whose image was changed",
    input: { containers: [container("main", "a")] },
    before: { containers: [container("main", "a", { policy: "Always" })] },
    now: { containers: [container("main", "b", { policy: "Always" })] },
    becomes: { containers: [container("main", "b")] },
  },
  {
    what: "an argument among others",
    input: { args: ["a", "b"] },
    before: { args: ["a", "b"] },
    now: { args: ["a", "c"] },
    becomes: { args: ["a", "c"] },
  },
  {
    what: "a list of another length",
    input: { args: ["a", "b"] },
    before: { args: ["a", "b"] },
    now: { args: ["a"] },
    becomes: { args: ["a"] },
  },
])("reads $what", ({ input, before, now, becomes }) => {
  expect(refreshed(input, before, now)).toEqual(becomes);
});
