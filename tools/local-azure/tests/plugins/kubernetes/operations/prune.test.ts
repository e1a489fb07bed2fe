import { pruned } from "../../../../plugins/kubernetes/operations/prune";

const container = (name: string, more = {}) => ({ name, image: name, ...more });

it.each([
  {
    what: "what the server fills in",
    inputs: { containers: [container("main")] },
    live: { containers: [container("main", { imagePullPolicy: "Always" })], status: "x" },
    seen: { containers: [container("main")] },
  },
  {
    what: "what is empty and left out by the server",
    inputs: { a: {}, b: [], c: "", d: false, e: 0, f: "1" },
    live: { f: "1" },
    seen: { a: {}, b: [], c: "", d: false, e: 0, f: "1" },
  },
  {
    what: "a quantity as the server writes it",
    inputs: { cpu: "0.5" },
    live: { cpu: "500m" },
    seen: { cpu: "500m" },
  },
  {
    what: "a field that somebody added",
    inputs: { a: "1" },
    live: { a: "1", b: "2" },
    seen: { a: "1" },
  },
  {
    what: "a value that somebody changed",
    inputs: { a: "1" },
    live: { a: "2" },
    seen: { a: "2" },
  },
  {
    what: "a value that somebody removed",
    inputs: { labels: { a: "1", b: "2" } },
    live: { labels: { a: "1" } },
    seen: { labels: { a: "1" } },
  },
  {
    what: "a container that was added behind its own",
    inputs: { containers: [container("main")] },
    live: { containers: [container("main"), container("side")] },
    seen: { containers: [container("main")] },
  },
  {
    what: "a container that was put before its own",
    inputs: { containers: [container("main")] },
    live: { containers: [container("side"), container("main")] },
    seen: { containers: [container("side")] },
  },
  {
    what: "arguments of which one was changed",
    inputs: { args: ["a", "b"] },
    live: { args: ["a", "c"] },
    seen: { args: ["a", "c"] },
  },
  {
    what: "arguments of which one was removed",
    inputs: { args: ["a", "b"] },
    live: { args: ["b"] },
    seen: { args: ["b"] },
  },
  {
    what: "arguments to which one was added",
    inputs: { args: ["a", "b"] },
    live: { args: ["a", "b", "c"] },
    seen: { args: ["a", "b"] },
  },
])("sees $what", ({ inputs, live, seen }) => {
  expect(pruned(live, inputs)).toEqual(seen);
});
