import * as pulumi from "@pulumi/pulumi";

import { findManifests, manifestsFor } from "./components/add-ons/manifests/manifests";
import { nodeImages } from "./components/add-ons/node-images";
import { keepAdditions } from "./components/azure/additions";
import { connect } from "./components/azure/resource-manager";
import { getExistingNetwork } from "./components/azure/existing-network";
import { explainRefusals } from "./components/azure/refusals";
import { Builder, builderMachine, refusePrivateSources } from "./components/image/builder";
import { ImageGallery, imageGroup, shownGallery } from "./components/image/image-gallery";
import { knownImage } from "./components/image/known-image";
import { customData } from "./components/machine/custom-data";
import { loadSettings } from "./components/settings/load";
import { wantsLogin } from "./components/settings/proxy";

/**
 * A stack of its own, by which `npm run image` makes a gallery image for the settings of another one. The first
 * update makes it, of a machine that the next one, which finds it made, takes away.
 */
export = async () => {
  const settings = loadSettings();
  if (wantsLogin(settings.httpProxy)) {
    throw new pulumi.RunError(
      "httpProxy has a login, and no image can be made through it: a first boot alone has no password. Make it with a proxy " +
        "that asks for none, or with a mirror (pulumi config set mirror ADDRESS)",
    );
  }
  refusePrivateSources(settings);
  const connection = await connect(settings);
  const existingNetwork = await getExistingNetwork(settings, connection);
  const manifests = await findManifests(manifestsFor(settings), { ...settings, isBegun: true });
  const bootData = customData(settings, "", nodeImages(settings, manifests));
  const { version, madeOf, contents, formerTags, shown } = await knownImage(
    settings,
    bootData,
    (one) => shownGallery(settings, one, connection),
  );
  const machine =
    contents === undefined ? await builderMachine(settings, version, connection) : undefined;
  await explainRefusals(settings, machine ? [machine] : []);
  keepAdditions({ settings, shown, previous: { tags: formerTags } });

  const group = imageGroup(settings, connection.subscriptionId);
  const builder =
    machine && new Builder("builder", { group, settings, machine, bootData, existingNetwork });
  const gallery = new ImageGallery("images", { group, settings, version, madeOf, builder });
  return {
    image: gallery.imageId,
    ...{ version, madeOf, contents: builder?.contents ?? contents },
    tags: Object.keys(settings.tags),
  };
};
