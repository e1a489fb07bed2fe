import { planFederation } from "../../../components/plan/federation";

const [own, entras] = ["https://kubernetes.default.svc.cluster.local", "https://entra.example"];

it.each([
  ["a new cluster begins with it", false, [entras, own], undefined, [true, false]],
  [
    "while a living one admits the issuer alone, all is as before",
    false,
    [own, entras],
    {},
    [false, true],
  ],
  ["with tokens of the issuer, pods log in by them", false, [entras, own], {}, [true, true]],
  [
    "the update after that takes the identity off",
    ...([false, [entras, own], { isFederated: true }, [true, false]] as const),
  ],
  [
    "one that goes back carries the identity at once",
    ...([true, [entras, own], { isFederated: true }, [false, true]] as const),
  ],
] as const)("%s", (_, machineIdentity, issuers, previous, expected) => {
  const isKnownToEntra = issuers[0] === entras;
  const { isUsed, isOnMachines } = planFederation(
    { machineIdentity },
    isKnownToEntra,
    previous,
    undefined,
  );

  expect([isUsed, isOnMachines]).toEqual(expected);
});

it("says that another update has to follow, and only then", () => {
  const settings = { machineIdentity: false };
  const said = (previous: Parameters<typeof planFederation>[2], isKnownToEntra = true) =>
    planFederation(settings, isKnownToEntra, previous, undefined).message;

  expect(said({})).toMatch(/Run pulumi up again/);
  // That the issuer is not known yet is said by itself.
  for (const message of [said(undefined), said({}, false), said({ isFederated: true })])
    expect(message).toBeUndefined();
});

it("leaves the identity where it is while the pods are not known to log in without it, and says why", () => {
  const settings = { machineIdentity: false };
  const before = { isFederated: true } as const;
  const { message, ...federation } = planFederation(settings, true, before, "nobody answers");

  expect(federation).toEqual({ isUsed: true, isOnMachines: true });
  expect(message).toMatch(/leaves the cluster's identity .*: nobody answers\. Run pulumi up again/);
});
