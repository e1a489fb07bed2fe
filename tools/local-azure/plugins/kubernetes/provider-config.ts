import { changesBetween } from "../protocol/changes";
import type { CheckResult, DiffResult } from "../protocol/protocol";
import { isUnknown, type Properties } from "../protocol/values";
import { text } from "./objects";

/** How this stand-in works, whatever the settings say. */
const always: readonly string[] = ["upsertExistingObjects", "enablePatchForce"];

const officialOnly: readonly string[] = [
  "cluster",
  "context",
  "deleteUnreachable",
  "enableConfigMapMutable",
  "enableSecretMutable",
  "namespace",
  "renderYamlToDirectory",
  "skipUpdateUnreachable",
];

/** Flags come as text. */
const isTrue = (value: unknown): boolean => value === true || value === "true";

/** Refuses, before anything is planned, what only the official plugin can do. */
export function checkConfig(news: Properties): CheckResult {
  const isOff = (property: string): boolean =>
    text(news[property]) === "false" || news[property] === false;
  const { clusterIdentifier } = news;
  const isIdentified = text(clusterIdentifier) !== "" && !isUnknown(clusterIdentifier);
  const failure = (reason: string) => (property: string) => ({ property, reason });
  const failures = [
    ...officialOnly
      .filter((property) => Boolean(news[property]) && !isOff(property))
      .concat(["enableServerSideApply"].filter(isOff))
      .map(failure("only the official plugin has it: leave it out")),
    ...always
      .filter((property) => !isTrue(news[property]))
      .map(failure("this stand-in for the kubernetes plugin works only with it: set it to true")),
    ...(isIdentified ? [] : ["clusterIdentifier"]).map(
      failure("only the official plugin tells clusters apart by their addresses: give each a name"),
    ),
  ];
  return { inputs: news, failures };
}

/** A provider that leads to another cluster is replaced, and every object in it too. */
export const diffConfig = (olds: Properties, news: Properties): DiffResult => ({
  changes: changesBetween(olds, news, { replaces: (path) => path === "clusterIdentifier" }),
});
