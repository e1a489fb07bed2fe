import { AzureError } from "../azure-error";
import { subscriptionPath } from "../resources/ids";
import type { Body, Resource, View } from "../resources/resource";

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
