import { knownArguments } from "../../../../../../components/plan/settings/rules/known-arguments";
import {
  Component,
  ownedArguments,
} from "../../../../../../components/plan/settings/rules/owned-arguments";
import { built, run } from "../../../../../support/tools";

const programs: [Component, string][] = [
  ["apiServerExtraArgs", "kube-apiserver"],
  ["controllerManagerExtraArgs", "kube-controller-manager"],
  ["schedulerExtraArgs", "kube-scheduler"],
  ["etcdExtraArgs", "etcd"],
];

it.each(programs)("%s knows exactly what %s lists", async (component, program) => {
  const { stdout, stderr } = await run(built(program), ["--help"]);

  const listed = `${stdout}\n${stderr}`.matchAll(/^ +(?:-[a-zA-Z], )?--([a-z0-9][a-z0-9.-]*)/gm);
  const names = new Set([...listed].map(([, name]) => name!));
  expect(knownArguments(component)).toEqual([...names].sort());
});

it.each(programs)("every argument of %s that is owned is one of %s", (component) => {
  expect(knownArguments(component)).toEqual(
    expect.arrayContaining(Object.keys(ownedArguments[component])),
  );
});
