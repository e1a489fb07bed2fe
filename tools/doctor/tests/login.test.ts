import type { Expected } from "../check";
import { checkCluster, checksOf } from "../doctor";
import { issuerIn, type IssuerState } from "../login";
import { healthyCluster, serveCluster, threeByThree } from "./support/cluster-state";

const issuer = "https://login.microsoftonline.com/a-tenant/v2.0";
const expected: Expected = { ...threeByThree, issuer };

const login = (state: IssuerState, of = expected) =>
  checksOf(of, { ...healthyCluster(), issuer: state }).find(
    ({ name }) => name === "login of people",
  );

it("is not looked at where nobody's tokens are admitted", () => {
  expect(login({ refused: 3 }, threeByThree)).toBeUndefined();
});

it("passes with an API server that has the issuer's keys, whatever it has refused", () => {
  const check = login({ keysAt: 1_795_791_864, failedAt: 1_795_791_800, refused: 3 });

  expect(check).toMatchObject({ notAsked: undefined, problems: [] });
  expect(check!.saw).toBe(`the API server has the keys of ${issuer}, of 2026-11-27T15:04:24Z`);
});

it("says nothing where nobody has tried", () => {
  expect(login({ refused: 0 })).toMatchObject({
    notAsked: expect.stringContaining("nobody has logged in"),
    problems: [],
  });
});

it.each<[string, IssuerState, RegExp]>([
  ["that never had the keys", { refused: 2 }, /refused 2 tokens, and has never had the keys/],
  [
    "that gets no newer keys",
    { keysAt: 1_795_791_800, failedAt: 1_795_791_864, refused: 0 },
    /in vain for its keys, at 2026-11-27T15:04:24Z/,
  ],
])("fails with an API server %s, and names the way in that is left", (_, state, saw) => {
  expect(login(state)!.problems).toEqual([
    {
      saw: expect.stringMatching(saw),
      fix: expect.stringMatching(/reach login\.microsoftonline\.com .* output kubeconfig/),
    },
  ]);
});

it("reads the metrics of an API server", () => {
  const name = "apiserver_authentication_jwt_authenticator_";
  const labels = (result: string) => `{apiserver_id_hash="sha256:7",result="${result}"}`;
  const lines = [
    `${name}jwks_fetch_last_timestamp_seconds${labels("failure")} 1.795791800e+09`,
    `${name}jwks_fetch_last_timestamp_seconds${labels("success")} 1.795791864e+09`,
    `${name}latency_seconds_count${labels("failure")} 25`,
    `${name}latency_seconds_count${labels("success")} 6`,
  ];

  expect(issuerIn(lines.join("\n"))).toEqual({
    ...{ keysAt: 1_795_791_864, failedAt: 1_795_791_800, refused: 25 },
  });
});

it("says until when the certificate is the way in that is left", async () => {
  const api = await serveCluster({ current: healthyCluster() });
  const sawOf = async (cluster: Expected) =>
    (await checkCluster({ ...cluster, kubeconfig: api.kubeconfig })).checks.find(
      ({ name }) => name === "admin certificate",
    )!.saw;

  const [withIssuer, without] = [await sawOf(expected), await sawOf(threeByThree)];

  api.close();
  expect(without).toMatch(/^valid until \d{4}-\d\d-\d\d, 36\d days$/);
  expect(withIssuer).toBe(`${without}, the way in when ${issuer} does not answer`);
});
