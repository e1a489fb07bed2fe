import { planTokenIssuers } from "../../../components/plan/token-issuers";
import { tokenIssuerOf } from "../../../components/token-issuer";

const own = "https://kubernetes.default.svc.cluster.local";
const settings = {
  clusterName: "zoned-dev",
  resourceManagerEndpoint: "https://management.azure.com",
  machineIdentity: true,
  workloadIdentities: [{ namespace: "shop", serviceAccount: "app", identityId: "", roles: [] }],
};
const without = { ...settings, workloadIdentities: [] };
const subscriptionId = "5ca1ab1e-0000-4000-8000-000000000001";
const entras = tokenIssuerOf(settings, subscriptionId);

it.each([
  ["a new cluster begins with it, and admits kubeadm's", settings, undefined, [entras, own]],
  ["a new cluster without it has what kubeadm gives it", without, undefined, undefined],
  ["a living one admits it first", settings, {}, [own, entras]],
  ["then it gives tokens of it", settings, { tokenIssuers: [own, entras] }, [entras, own]],
  [
    "so does one whose machines carry no identity",
    ...([{ ...without, machineIdentity: false }, undefined, [entras, own]] as const),
  ],
  ["it stays", settings, { tokenIssuers: [entras, own] }, [entras, own]],
  [
    "one that stops goes back, and admits it",
    without,
    { tokenIssuers: [entras, own] },
    [own, entras],
  ],
  ["one that stops half-way goes back", without, { tokenIssuers: [own, entras] }, [own, entras]],
  ["one that never had it stays so", without, {}, undefined],
] as const)("%s", (_, wanted, previous, issuers) => {
  const planned = planTokenIssuers(wanted, subscriptionId, previous as never);

  expect(planned.tokenIssuers).toEqual(issuers);
});

it("says that another update has to follow the first one", () => {
  expect(planTokenIssuers(settings, subscriptionId, {}).message).toMatch(/Run pulumi up again/);
  const next = { tokenIssuers: [own, entras] as const };
  expect(planTokenIssuers(settings, subscriptionId, next).message).toMatch(/of before stay valid/);
});
