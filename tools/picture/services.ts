import type { Rule } from "./azure";
import type { Service } from "./cluster";

const nameOf = ({ metadata: { namespace, name } }: Service): string => `${namespace}/${name}`;

/** The cloud provider names rules by the Service's uid. */
export const serviceOf = ({ name }: Rule, services: readonly Service[]): string | undefined => {
  const service = services.find(
    ({ metadata: { uid } }) =>
      uid !== undefined && name.startsWith(`a${uid.replaceAll("-", "")}`.slice(0, 32)),
  );
  return service && nameOf(service);
};

/** Services that the cloud provider has given no address. */
export const waitingServices = (services: readonly Service[]): string[] =>
  services
    .filter(
      ({ spec, status }) =>
        spec.type === "LoadBalancer" && (status?.loadBalancer?.ingress ?? []).length === 0,
    )
    .map(nameOf);
