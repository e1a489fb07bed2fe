import { fixedProblems, fixedSettings } from "../../../components/plan/fixed-settings";
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
] as const)("names another %s, what it was, and the command back", (key, value) => {
  const [problem, ...others] = fixedProblems({ ...validSettings, [key]: value }, made);

  expect(others).toEqual([]);
  expect(problem).toContain(`${key} is ${value}, and this stack's cluster was made with`);
  expect(problem).toContain(`(pulumi config set ${key} ${validSettings[key]})`);
});

it("names other zones, and a command for each that there was", () => {
  const [problem] = fixedProblems({ ...validSettings, zones: ["1"] }, { zones: ["1", "2"] });

  expect(problem).toContain("zones is 1, and this stack's cluster was made with 1, 2");
  expect(problem).toContain("pulumi config rm zones");
  expect(problem).toContain("pulumi config set --path --type string 'zones[1]' 2");
});
