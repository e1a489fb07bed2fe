import { newArm, refusedBy } from "../../../support/arm/fixture";
import { group, valid } from "../../../support/arm/valid-resources";

const identity = `${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/app`;
const id = (name: string): string => `${identity}/federatedIdentityCredentials/${name}`;
const credential = (change: object = {}) => ({
  issuer: "https://issuer.example/one",
  subject: "system:serviceaccount:shop:app",
  audiences: ["api://AzureADTokenExchange"],
  ...change,
});

async function withIdentity() {
  const { arm } = newArm();
  await arm.put(...valid.group);
  await arm.put(identity, { location: "westeurope" });
  return arm;
}

it.each([
  ["an issuer without TLS", { issuer: "http://issuer.example" }],
  ["no audience", { audiences: [] }],
  ["two audiences", { audiences: ["one", "other"] }],
  ["nobody", { subject: "" }],
])("refuses a credential of %s", async (_, change) => {
  const arm = await withIdentity();

  expect(await refusedBy(arm.put(id("app"), credential(change)))).toMatch(/^BadRequest/);
});

it("takes an issuer and a subject once, and twenty credentials of an identity", async () => {
  const arm = await withIdentity();
  await arm.put(id("one"), credential());

  expect(await refusedBy(arm.put(id("other"), credential()))).toMatch(/^Conflict/);
  for (let count = 2; count <= 20; count += 1) {
    await arm.put(id(`app-${count}`), credential({ subject: `system:serviceaccount:a:${count}` }));
  }
  const more = arm.put(id("more"), credential({ subject: "system:serviceaccount:a:more" }));
  expect(await refusedBy(more)).toMatch(/^BadRequest: Too many/);
});
