import { fixedProblems, fixedSettings } from "../../../../components/plan/fixed-settings";
import { sound } from "../../../support/sample";

const made = fixedSettings(sound);

it("lets a cluster be that was made with these settings, or of which nothing is known", () => {
  expect(fixedProblems(sound, made)).toEqual([]);
  expect(fixedProblems(sound, undefined)).toEqual([]);
  expect(fixedProblems(sound, { location: sound.location })).toEqual([]);
  expect(fixedProblems({ ...sound, zones: ["3", "1", "2"] }, made)).toEqual([]);
});

it.each([
  ["clusterName", "other"],
  ["location", "northeurope"],
  ["networkCidr", "10.0.0.0/16"],
  ["podCidr", "10.1.0.0/16"],
  ["serviceCidr", "10.2.0.0/16"],
  ["cni", "flannel"],
] as const)("names another %s, what it was, and the command back", (key, value) => {
  const [problem, ...others] = fixedProblems({ ...sound, [key]: value }, made);

  expect(others).toEqual([]);
  expect(problem).toContain(`${key} is ${value}, and this stack's cluster was made with`);
  expect(problem).toContain(`(pulumi config set ${key} ${sound[key]})`);
});

it("names other zones, and a command for each that there was", () => {
  const [problem] = fixedProblems({ ...sound, zones: ["1"] }, { zones: ["1", "2"] });

  expect(problem).toContain("zones is 1, and this stack's cluster was made with 1, 2");
  expect(problem).toContain("pulumi config rm zones");
  expect(problem).toContain("pulumi config set --path --type string 'zones[1]' 2");
});
