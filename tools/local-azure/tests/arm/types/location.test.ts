import { itNeverChanges, itRefuses } from "../../support/arm/input-tables";
import { Kind, valid } from "../../support/arm/valid-resources";

itRefuses("group", [
  [{ location: undefined }, "LocationRequired"],
  [{ location: "atlantis" }, "LocationNotAvailableForResourceGroup"],
]);
itRefuses("vnet", [[{ location: "x" }, "LocationNotAvailableForResourceType"]]);

const located = (Object.keys(valid) as Kind[]).filter((kind) => "location" in valid[kind][1]);
for (const kind of located) {
  const codes: Partial<Record<Kind, string>> = {
    group: "InvalidResourceGroupLocation:",
    zone: "LocationNotAvailableForResourceType:",
    link: "LocationNotAvailableForResourceType:",
  };
  const code = codes[kind] ?? "InvalidResourceLocation:";
  itNeverChanges(kind, [[{ location: "northeurope" }, code]]);
}
