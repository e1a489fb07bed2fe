import { AzureError, refuse } from "../azure-error";
import { type Body, type Resource, subscriptionPath, type View } from "../resources/resource";

/** Published versions by the beginning of the type in lower case; the first that fits counts. */
const published: Readonly<Record<string, string>> = {
  "microsoft.network/privatednszones": "2018-09-01 2020-01-01 2020-06-01 2024-06-01",
  "microsoft.network/":
    "2023-09-01 2023-11-01 2024-01-01 2024-03-01 2024-05-01 2024-07-01 2024-10-01 2025-01-01 2025-03-01 2025-05-01",
  "microsoft.compute/skus": "2017-09-01 2019-04-01 2021-07-01",
  "microsoft.compute/disks": "2023-01-02 2023-04-02 2023-10-02 2024-03-02 2025-01-02",
  "microsoft.compute/diskencryptionsets": "2023-01-02 2023-04-02 2023-10-02 2024-03-02 2025-01-02",
  "microsoft.compute/features": "2015-12-01 2021-07-01",
  "microsoft.compute/galleries": "2022-03-03 2022-08-03 2023-07-03 2024-03-03 2025-03-03",
  "microsoft.compute/snapshots": "2023-01-02 2023-04-02 2023-10-02 2024-03-02 2025-01-02",
  "microsoft.compute/":
    "2021-07-01 2022-11-01 2023-03-01 2023-07-01 2023-09-01 2024-03-01 2024-07-01 2024-11-01 2025-04-01 2026-03-01",
  "microsoft.storage/":
    "2022-09-01 2023-01-01 2023-04-01 2023-05-01 2024-01-01 2025-01-01 2025-06-01 2025-08-01 2026-04-01 2026-09-01",
  "microsoft.containerregistry/":
    "2022-12-01 2023-01-01-preview 2023-07-01 2024-11-01-preview 2025-04-01 2025-11-01",
  "microsoft.managedidentity/": "2018-11-30 2023-01-31 2024-11-30",
  "microsoft.authorization/policyexemptions":
    "2020-07-01-preview 2022-07-01-preview 2024-12-01-preview",
  "microsoft.authorization/policy": "2021-06-01 2023-04-01 2024-05-01 2025-01-01 2025-03-01",
  "microsoft.policyinsights/": "2020-07-01 2022-03-01 2023-03-01 2024-10-01",
  "microsoft.authorization/locks": "2016-09-01 2017-04-01 2020-05-01",
  "microsoft.authorization/roledefinitions": "2018-01-01-preview 2022-04-01 2022-05-01-preview",
  "microsoft.authorization/": "2018-01-01-preview 2020-10-01 2022-04-01",
  "microsoft.resources/":
    "2019-05-01 2019-10-01 2020-06-01 2020-10-01 2021-04-01 2022-09-01 2022-12-01 2023-07-01 2024-03-01 2024-07-01 2024-11-01 2025-04-01",
};

export const versionsOf = (type: string): string[] =>
  Object.entries(published)
    .find(([prefix]) => type.toLowerCase().startsWith(prefix))?.[1]
    .split(" ") ?? [];

/** Throws unless the request names a version that the type has. */
export function checkApiVersion(version: string | null, type: string, method: string): void {
  if (version === null || version === "") {
    throw refuse(
      "MissingApiVersionParameter",
      "The api-version query parameter (?api-version=) is required for all requests.",
    );
  }
  const versions = versionsOf(type);
  if (versions.includes(version)) return;
  const supported = `'${versions.toReversed().join(", ")}'`;
  const [namespace, ...names] = type.split("/");
  const isDate = /^\d{4}-\d{2}-\d{2}(-preview)?$/.test(version);
  if (!isDate || namespace?.toLowerCase() === "microsoft.resources") {
    throw refuse(
      "InvalidApiVersionParameter",
      `The api-version '${version}' is invalid. The supported versions are ${supported}.`,
    );
  }
  if (method === "GET") {
    throw new AzureError(
      404,
      "InvalidResourceType",
      `The resource type '${names.join("/")}' could not be found in the namespace '${namespace}' for api version '${version}'. ` +
        `The supported api-versions are ${supported}.`,
    );
  }
  throw refuse(
    "NoRegisteredProviderFound",
    `No registered resource provider found for API version '${version}' for type '${names.join("/")}'. ` +
      `The supported api-versions are ${supported}.`,
  );
}

/** What a subscription has only once it is registered, and no resource: no list has it. */
export const featureType = "Microsoft.Features/features";

const known = ["Microsoft.Compute/EncryptionAtHost"] as const;

/** Such as Microsoft.Compute/EncryptionAtHost. */
export type Feature = (typeof known)[number];

const idOf = (feature: Feature): string => {
  const [namespace, name] = feature.split("/");
  return `${subscriptionPath}/providers/Microsoft.Features/providers/${namespace}/features/${name}`;
};

/** The feature that a path names, and what is to be done with it; undefined for other paths. */
export function featureAt(
  path: string,
): { readonly feature: Feature; readonly action?: string } | undefined {
  const [, namespace, name, action] =
    /\/providers\/Microsoft\.Features\/providers\/([^/]+)\/features\/([^/]+)(?:\/([^/]+))?$/i.exec(
      path,
    ) ?? [];
  if (namespace === undefined) return undefined;
  const wanted = `${namespace}/${name}`.toLowerCase();
  const feature = known.find((one) => one.toLowerCase() === wanted);
  if (feature === undefined) {
    throw new AzureError(404, "FeatureNotFound", `The feature '${name}' could not be found.`);
  }
  return { feature, action };
}

export const isRegistered = (feature: Feature, view: View): boolean =>
  view.find(idOf(feature)) !== undefined;

/** As GET returns it. */
export const featureBody = (feature: Feature, view: View): Body => ({
  properties: { state: isRegistered(feature, view) ? "Registered" : "NotRegistered" },
  id: idOf(feature),
  type: "Microsoft.Features/providers/features",
  name: feature,
});

/** What is kept of one that is registered. Azure needs minutes for it, and none here. */
export const registered = (feature: Feature, now: Date): Resource => ({
  id: idOf(feature),
  type: featureType,
  body: {},
  hidden: {},
  changed: now.toISOString(),
});
