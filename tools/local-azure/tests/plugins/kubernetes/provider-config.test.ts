import { Properties } from "../../../plugins/protocol/values";
import { checkConfig, diffConfig } from "../../../plugins/kubernetes/provider-config";

const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

const kubeconfig = (server: string, token = "a") => `
clusters: [{ name: c, cluster: { server: "${server}" } }]
users: [{ name: u, user: { token: ${token} } }]
`;
const here = kubeconfig("https://here:6443");
const there = kubeconfig("https://there:6443");

it.each([
  { what: "nothing", olds: {}, news: {}, replaces: [] },
  {
    what: "another cluster",
    olds: { kubeconfig: here },
    news: { kubeconfig: there },
    replaces: ["kubeconfig"],
  },
  {
    what: "another token for the same cluster",
    olds: { kubeconfig: here },
    news: { kubeconfig: kubeconfig("https://here:6443", "b") },
    replaces: [],
  },
  {
    what: "a kubeconfig that is not known yet",
    olds: { kubeconfig: here },
    news: { kubeconfig: unknown },
    replaces: ["kubeconfig"],
  },
  {
    what: "another cluster of the same identifier",
    olds: { kubeconfig: here, clusterIdentifier: "a" },
    news: { kubeconfig: there, clusterIdentifier: "a" },
    replaces: [],
  },
  {
    what: "an unknown kubeconfig of the same identifier",
    olds: { kubeconfig: here, clusterIdentifier: "a" },
    news: { kubeconfig: unknown, clusterIdentifier: "a" },
    replaces: [],
  },
  {
    what: "another identifier",
    olds: { kubeconfig: here, clusterIdentifier: "a" },
    news: { kubeconfig: here, clusterIdentifier: "b" },
    replaces: ["clusterIdentifier"],
  },
  {
    what: "an identifier that was not there before",
    olds: { kubeconfig: here },
    news: { kubeconfig: here, clusterIdentifier: "a" },
    replaces: [],
  },
])("for $what replaces $replaces", ({ olds, news, replaces }) => {
  const { changes } = diffConfig(olds, news);

  expect(changes.filter((change) => change.replaces).map(({ path }) => path)).toEqual(replaces);
  expect(changes).toHaveLength(
    Object.keys(news).filter((key) => (olds as Properties)[key] !== (news as Properties)[key])
      .length,
  );
});

it.each([
  ["renderYamlToDirectory", "out"],
  ["enableServerSideApply", "false"],
  ["namespace", "here"],
  ["skipUpdateUnreachable", "true"],
  ["upsertExistingObjects", "false"],
  ["enablePatchForce", undefined],
])("refuses what only the official plugin can do: %s: %s", (property, value) => {
  const { failures } = checkConfig({
    ...{ upsertExistingObjects: "true", enablePatchForce: "true", enableServerSideApply: "true" },
    ...{ skipUpdateUnreachable: "false", [property]: value },
  });

  expect(failures?.map((failure) => failure.property)).toEqual([property]);
});
