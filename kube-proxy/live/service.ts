import type { V1Service } from "@kubernetes/client-node";

import { Trouble } from "../../local-azure/trouble";
import type { Packet } from "../packet";
import type { Destination } from "../query";

/** Where a Service is reached inside its cluster, as the API has it; `port` by name or number. */
export function destinationsOf({ metadata, spec }: V1Service, port: string | null): Destination[] {
  const name = `${metadata?.namespace}/${metadata?.name}`;
  const addresses = (spec?.clusterIPs ?? []).filter((address) => address !== "None");
  if (addresses.length === 0) {
    throw new Trouble(
      `service: ${name} has no cluster IP (headless, or an ExternalName), so kube-proxy leaves it be`,
      2,
    );
  }
  const all = spec?.ports ?? [];
  const ports = all.filter((each) => port === null || [each.name, `${each.port}`].includes(port));
  if (ports.length === 0) {
    const had = all
      .map((each) => (each.name ? `${each.name} (${each.port})` : each.port))
      .join(", ");
    throw new Trouble(`service: expected a port of ${name}, which are ${had}, got "${port}"`, 2);
  }
  return addresses.flatMap((destination) =>
    ports.map((each) => ({
      destination,
      port: each.port,
      protocol: (each.protocol ?? "TCP").toLowerCase() as Packet["protocol"],
    })),
  );
}
