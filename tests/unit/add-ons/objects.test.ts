import * as pulumi from "@pulumi/pulumi";

import { applyObjects, objectIn, parseObjects } from "../../../components/add-ons/objects";
import { dependenciesOf, Recorder } from "../../support/record";

const account =
  "apiVersion: v1\nkind: ServiceAccount\nmetadata: { name: a, namespace: kube-system }\n";
const daemonSet =
  "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: { name: d, namespace: kube-system }\nspec: {}\n";

async function apply(text: string) {
  const recorder = await Recorder.start();
  const parent = new pulumi.ComponentResource(
    "test:index:Parent",
    "parent",
    {},
    {
      transformations: [recorder.watch],
    },
  );
  const resources = applyObjects("thing", parseObjects("thing.yaml", text), { parent });
  return { recorder, resources };
}

it("makes a resource of every object, named after its add-on, kind and name", async () => {
  const { recorder } = await apply(`---\n${account}---\n---\n${daemonSet}---\n`);

  expect((await recorder.objects()).map(({ type, name }) => ({ type, name }))).toEqual([
    { type: "kubernetes:core/v1:ServiceAccount", name: "thing/ServiceAccount/a" },
    { type: "kubernetes:apps/v1:DaemonSet", name: "thing/DaemonSet/d" },
  ]);
});

it("takes lists apart", () => {
  const list = `apiVersion: v1\nkind: List\nitems:\n- { apiVersion: v1, kind: ConfigMap, metadata: { name: x } }\n`;

  expect(parseObjects("list.yaml", list)).toEqual([
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x" } },
  ]);
});

it("applies what runs after what it needs, wherever the manifest has it", async () => {
  const { recorder } = await apply(`${daemonSet}---\n${account}`);

  const needs = await recorder.object("ServiceAccount", "a");
  expect(await dependenciesOf(await recorder.object("DaemonSet", "d"))).toEqual([needs.resource]);
});

it("refuses a kind that it does not know, by name", async () => {
  await expect(
    apply("apiVersion: batch/v1\nkind: Job\nmetadata: { name: once }\n"),
  ).rejects.toThrow("thing has a batch/v1/Job called once");
});

it("says which file is not YAML", () => {
  expect(() => parseObjects("thing.yaml", "a: [")).toThrow("thing.yaml is not YAML");
});

it("hands out the one object of a kind and name, and refuses two", () => {
  const objects = parseObjects("thing.yaml", account);

  expect(objectIn(objects, "ServiceAccount", "a")).toBe(objects[0]);
  expect(() => objectIn([...objects, ...objects], "ServiceAccount", "a")).toThrow("got 2");
});
