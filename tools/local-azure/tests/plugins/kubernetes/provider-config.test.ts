import { checkConfig, diffConfig } from "../../../plugins/kubernetes/provider-config";

it("replaces the provider of another cluster, and not one whose kubeconfig changes", () => {
  const { changes } = diffConfig(
    { kubeconfig: "one", clusterIdentifier: "a" },
    { kubeconfig: "two", clusterIdentifier: "b" },
  );

  expect(changes).toEqual([
    { path: "kubeconfig", kind: "update", replaces: false },
    { path: "clusterIdentifier", kind: "update", replaces: true },
  ]);
});

it.each([
  ["renderYamlToDirectory", "out"],
  ["enableServerSideApply", "false"],
  ["namespace", "here"],
  ["skipUpdateUnreachable", "true"],
  ["upsertExistingObjects", "false"],
  ["enablePatchForce", undefined],
  ["deleteUnreachable", "true"],
  ["clusterIdentifier", undefined],
  ["clusterIdentifier", "04da6b54-80e4-46f7-96ec-b56ff0331ba9"],
])("refuses what only the official plugin can do: %s: %s", (property, value) => {
  const { failures } = checkConfig({
    ...{ upsertExistingObjects: "true", enablePatchForce: "true", enableServerSideApply: "true" },
    ...{ skipUpdateUnreachable: "false", clusterIdentifier: "a", [property]: value },
  });

  expect(failures?.map((failure) => failure.property)).toEqual([property]);
});
