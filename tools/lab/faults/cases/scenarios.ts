type Settings = Readonly<Record<string, unknown>>;

/** What is done to a stack while things go wrong. */
export interface Scenario {
  readonly key: string;
  readonly name: string;
  readonly stack: string;
  /** Settings of the cluster that is there already; without it there is nothing yet. */
  readonly before?: Settings;
  readonly operation: "up" | "destroy";
  readonly settings: Settings;
}

/** Without what needs the internet at deploy time. */
const offline = { cni: "flannel", diskDriver: false };

/** Nothing but the machines is of interest, so the add-ons are the smallest. */
export const small = { ...offline, cloudProvider: false, storageClasses: false };

export const firstUp: Scenario = {
  key: "first-up",
  name: "the first update of dev",
  stack: "dev",
  operation: "up",
  settings: offline,
};

export const scenarios: readonly Scenario[] = [
  firstUp,
  {
    key: "replacement",
    name: "a rolling replacement of prod",
    stack: "prod",
    before: small,
    operation: "up",
    settings: { ...small, imageVersion: "24.04.202608110" },
  },
  {
    key: "resize",
    name: "a resize of prod's control planes",
    stack: "prod",
    before: small,
    operation: "up",
    settings: { ...small, controlPlaneSize: "Standard_D4s_v5" },
  },
  {
    key: "labels",
    name: "new labels of prod's workers",
    stack: "prod",
    before: small,
    operation: "up",
    settings: {
      ...small,
      workerPools: [
        { name: "workers", count: 3, size: "Standard_D4s_v5", labels: { tier: "front" } },
      ],
    },
  },
  {
    key: "destroy",
    name: "a destroy of prod",
    stack: "prod",
    before: small,
    operation: "destroy",
    settings: small,
  },
];

export const scenarioOf = (key: string): Scenario => scenarios.find((one) => one.key === key)!;
