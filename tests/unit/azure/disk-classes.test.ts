import type { Sku } from "../../../components/azure/size-offers";
import { diskClasses, planDiskClasses } from "../../../components/azure/disk-classes";
import { skusIn } from "../../../tools/local-azure/arm/subscription/offers";
import { validSettings } from "../../support/sample";

const settings = { ...validSettings, zones: ["1", "2", "3"], location: "westeurope" };
const all = diskClasses(settings.zones).map(({ name }) => name);
const redundant = ["standard-ssd-zrs", "premium-ssd-zrs"];

/** What Azure says of a region, with a restriction of some kind of disk. */
const offered = (location: string, restricted?: string, zones?: readonly string[]) => ({
  skus: (skusIn(location) as Sku[]).map((sku) =>
    sku.name !== restricted
      ? sku
      : {
          ...sku,
          restrictions: [
            {
              type: zones ? "Zone" : "Location",
              reasonCode: "NotAvailableForSubscription",
              restrictionInfo: { locations: [location], ...(zones && { zones }) },
            },
          ],
        },
  ),
});

const left = (...args: Parameters<typeof planDiskClasses>) =>
  planDiskClasses(...args).leftOut.map(({ name }) => name);

const made = (...args: Parameters<typeof planDiskClasses>) =>
  planDiskClasses(...args).made.map(({ name }) => name);

it("has all StorageClasses where Azure offers all disks", () => {
  expect(made(settings, offered("westeurope"), undefined)).toEqual(all);
});

it.each([
  { where: "in a region without zone-redundant disks", region: "centralus", leaves: redundant },
  {
    where: "where this subscription may not have them",
    restricted: "Premium_ZRS",
    leaves: ["premium-ssd-zrs"],
  },
  {
    where: "of a zone that is closed to it",
    restricted: "Premium_LRS",
    zones: ["2"],
    leaves: ["premium-ssd-zone-2"],
  },
])("leaves out those of disks that are not offered: $where", (scene) => {
  const { region: location = "westeurope", restricted, zones, leaves } = scene;
  const offers = offered(location, restricted, zones);

  expect(left({ ...settings, location }, offers, undefined)).toEqual(leaves);
});

it("takes no class from a cluster that has it, whatever Azure offers now", () => {
  const storageClasses = all.filter((name) => name !== "standard-ssd-zrs");
  const location = "centralus";

  expect(left({ ...settings, location }, offered(location), { storageClasses })).toEqual([
    "standard-ssd-zrs",
  ]);
});

it("makes a class that was left out when Azure begins to offer its disks", () => {
  expect(made(settings, offered("westeurope"), { storageClasses: [] })).toEqual(all);
});

it("has none where the setting says so", () => {
  expect(made({ ...settings, storageClasses: false }, offered("westeurope"), undefined)).toEqual(
    [],
  );
});
