import type { Cases } from "./case";

const imageIn = (group: string, version = "2026.1127.930"): string =>
  `/subscriptions/3f1f6c52-8f0e-4b0c-9a52-4a3f6b0f7e11/resourceGroups/${group}/providers/Microsoft.Compute/galleries/zoned/images/node/versions/${version}`;

export const imageCases: Cases = {
  refused: [
    ["an image by its name", { image: "node" }, "Azure's id of one version of a gallery image"],
    ["the latest one, which moves", { image: imageIn("images", "latest") }, "latest would differ"],
    [
      "an image that goes with the cluster",
      { clusterName: "mine", image: imageIn("Mine") },
      "in another resource group than mine",
    ],
  ],
  accepted: [
    ["an image of a gallery", { image: imageIn("images") }],
    [
      "an image, and of which Ubuntu it is made",
      { image: imageIn("images"), imageVersion: "24.04.202501010" },
    ],
  ],
};
