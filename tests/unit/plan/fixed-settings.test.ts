import { shownAs } from "../../../components/azure/shown";
import {
  fixedInAzure,
  fixedProblems,
  fixedSettings,
} from "../../../components/plan/fixed-settings";
import { validSettings } from "../../support/sample";

const made = fixedSettings(validSettings);

it("lets a cluster be that was made with these settings, or of which nothing is known", () => {
  expect(fixedProblems(validSettings, made)).toEqual([]);
  expect(fixedProblems(validSettings, undefined)).toEqual([]);
  expect(fixedProblems(validSettings, { location: validSettings.location })).toEqual([]);
  expect(fixedProblems({ ...validSettings, zones: ["3", "1", "2"] }, made)).toEqual([]);
});

it.each([
  ["clusterName", "other"],
  ["location", "northeurope"],
  ["networkCidr", "10.0.0.0/16"],
  ["podCidr", "10.1.0.0/16"],
  ["serviceCidr", "10.2.0.0/16"],
  ["cni", "flannel"],
  ["apiAccess", "private"],
] as const)("names another %s, what it was, and the command back", (key, value) => {
  const [problem, ...others] = fixedProblems({ ...validSettings, [key]: value }, made);

  expect(others).toEqual([]);
  expect(problem).toContain(`${key} is ${value}, and this stack's cluster was made with`);
  expect(problem).toContain(`(pulumi config set ${key} ${validSettings[key]})`);
});

it("keeps a network of the cluster's own, and subnets of others in their order", () => {
  const given = { ...validSettings, nodeSubnets: ["/one", "/two", "/three"] };
  const other = { ...given, nodeSubnets: ["/two", "/one", "/three"] };

  expect(fixedProblems(given, fixedSettings(given))).toEqual([]);
  expect(fixedProblems(other, fixedSettings(given))).toEqual([
    expect.stringMatching(/nodeSubnets is \/two, .* made with \/one, \/two, \/three/),
  ]);
  expect(fixedProblems(given, made)).toEqual([
    expect.stringMatching(/was made with none: .*\(pulumi config rm nodeSubnets\)/),
  ]);
});

it("keeps a resource group of the cluster's own, and one of others", () => {
  const given = { ...validSettings, resourceGroup: "platform" };

  expect(fixedProblems(given, fixedSettings(given))).toEqual([]);
  expect(fixedProblems(given, made)).toEqual([
    expect.stringMatching(
      /resourceGroup is platform, .* made with none: .*\(pulumi config set resourceGroup ''\)/,
    ),
  ]);
  expect(fixedProblems(validSettings, fixedSettings(given))).toEqual([
    expect.stringMatching(/resourceGroup is none, .* made with platform/),
  ]);
});

it("names other zones, and a command for each that there was", () => {
  const [problem] = fixedProblems({ ...validSettings, zones: ["1"] }, { zones: ["1", "2"] });

  expect(problem).toContain("zones is 1, and this stack's cluster was made with 1, 2");
  expect(problem).toContain("pulumi config rm zones");
  expect(problem).toContain("pulumi config set --path --type string 'zones[1]' 2");
});

it("names another name of a private API, and the one back", () => {
  const settings = {
    ...validSettings,
    apiAccess: "private",
    apiName: "api.zoned.example",
  } as const;
  const [problem] = fixedProblems({ ...settings, apiName: "" }, fixedSettings(settings));

  expect(problem).toContain("(pulumi config set apiName api.zoned.example)");
});

it.each([
  ["private", { subnet: { id: "/subnets/internal-balancers" } }],
  ["public", { publicIPAddress: { id: "/publicIPAddresses/api" } }],
] as const)(
  "knows an API by Azure that was made %s, before any update has ended well",
  (apiAccess, properties) => {
    const balancer = {
      name: "zoned-test-api",
      properties: { frontendIPConfigurations: [{ properties }] },
    };
    const shown = new Map([
      [shownAs("azure-native:network:LoadBalancer", balancer.name), balancer],
    ]);

    expect(fixedInAzure({ groupLocation: "westeurope", shown }, validSettings)).toEqual({
      location: "westeurope",
      apiAccess,
    });
  },
);

it("knows nothing of an API by Azure that has no balancer yet", () => {
  const { apiAccess } = fixedInAzure({ shown: new Map() }, validSettings);

  expect(apiAccess).toBeUndefined();
});
