import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { parseAllDocuments, stringify } from "yaml";

import { kubeadmFiles } from "../../../components/kubeadm/kubeadm";
import { planTokenIssuers } from "../../../components/plan/federation";
import { kubeadmProblems } from "../../../components/settings/rules/kubeadm";
import {
  knownArguments,
  ownedArguments,
  programs,
} from "../../../components/settings/rules/known-arguments";
import type { Component, Settings } from "../../../components/settings/settings";
import { machinesOf } from "../../../components/settings/topology";
import { minors, versions } from "../../../components/versions";
import { specOf, subscriptionId, validSettings } from "../../support/sample";
import { argumentCases } from "../../support/settings-cases/arguments";
import { testFolder } from "../../support/test-folder";
import { built, run } from "../../support/tools";
import { kubeProxyConfiguration } from "../../../components/kubeadm/kube-proxy";
import { kubeProxyProblems } from "../../../components/settings/rules/kube-proxy";
import { endings, startings } from "../../support/settings-cases/kube-proxy";
import type { Values } from "../../support/stack";

type Arguments = Readonly<Record<string, string>>;

const components = Object.keys(programs) as Component[];

const known = (component: Component) => knownArguments(component, versions.kubernetes);

const withArguments = (component: Component, extra: Arguments) => ({
  ...validSettings,
  kubernetesVersion: versions.kubernetes,
  kubeadm: { ...validSettings.kubeadm, [component]: extra },
});

const folder = testFolder();

/** Where a program ends that has taken its arguments or configuration: a file cannot have files in it. */
const nowhere = "/dev/null/nowhere";

/** What kubeadm sets where an operator does not, as far as it could be at odds with theirs. */
const kubeadms: Readonly<Record<Component, Arguments>> = {
  apiServerExtraArgs: {
    "authorization-mode": "Node,RBAC",
    "enable-admission-plugins": "NodeRestriction",
    "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
  },
  controllerManagerExtraArgs: { controllers: "*,bootstrapsigner,tokencleaner" },
  schedulerExtraArgs: {},
  etcdExtraArgs: { "feature-gates": "InitialCorruptCheck=true" },
  kubeletExtraArgs: {},
};

/** What each has beside the rendered arguments, so that it neither runs on nor writes anywhere. */
const ends: Readonly<Record<Component, readonly string[]>> = {
  // Without servers of etcd it says all that it has against its arguments, and ends.
  apiServerExtraArgs: [`--cert-dir=${folder}`],
  controllerManagerExtraArgs: [`--cert-dir=${folder}`, `--kubeconfig=${nowhere}`],
  schedulerExtraArgs: [`--cert-dir=${folder}`, `--kubeconfig=${nowhere}`],
  etcdExtraArgs: ["--name=member", `--data-dir=${nowhere}`],
  kubeletExtraArgs: [
    ...[`--cert-dir=${folder}`, `--kubeconfig=${nowhere}`, `--bootstrap-kubeconfig=${nowhere}`],
    `--config=${join(folder, "kubelet.yaml")}`,
  ],
};

const kindsOf = (settings: Settings) => {
  const [machine] = machinesOf(settings);
  const { tokenIssuers } = planTokenIssuers(settings, subscriptionId, undefined);
  const documents = kubeadmFiles(specOf(settings, { tokenIssuers }), machine!)
    .filter(({ path }) => path.endsWith("kubeadm-init.yaml"))
    .flatMap(({ content }) => parseAllDocuments(content).map((document) => document.toJS()));
  return (name: string) => documents.find((one) => one.kind === name);
};

beforeAll(() => {
  const configuration = kindsOf(validSettings)("KubeletConfiguration");
  writeFileSync(join(folder, "kubelet.yaml"), stringify(configuration));
});

/** The arguments that kubeadm gets for a component, and hands on to its program. */
function rendered(component: Component, extra: Arguments): string[] {
  const kind = kindsOf(withArguments(component, extra));
  const cluster = kind("ClusterConfiguration");
  const lists: Record<Component, { name: string; value: string }[]> = {
    apiServerExtraArgs: cluster.apiServer.extraArgs,
    controllerManagerExtraArgs: cluster.controllerManager.extraArgs,
    schedulerExtraArgs: cluster.scheduler.extraArgs,
    etcdExtraArgs: cluster.etcd.local.extraArgs,
    kubeletExtraArgs: kind("InitConfiguration").nodeRegistration.kubeletExtraArgs,
  };
  const kept = Object.entries(kubeadms[component])
    .filter(([name]) => !lists[component].some((one) => one.name === name))
    .map(([name, value]) => ({ name, value }));
  return [...kept, ...lists[component]].map(({ name, value }) => `--${name}=${value}`);
}

/** What a program says at its end, without what differs from run to run. */
async function end(component: Component, extra: Arguments): Promise<string> {
  const args = [...ends[component], ...rendered(component, extra)];
  const { stdout, stderr } = await run(built(programs[component]), args);
  return `${stdout}\n${stderr}`
    .split("\n")
    .filter((line) =>
      /^(E\d{4} |Error:|invalid value|flag provided)|"level":"fatal"|error verifying/.test(line),
    )
    .map((line) => line.replace(/^E\d{4} [\d:.]+ +\d+ /, "").replace(/"ts":"[^"]*"/, ""))
    .join("\n");
}

const complaints = (component: Component, extra: Arguments) =>
  kubeadmProblems(withArguments(component, extra)).map(({ key, is, expected }) =>
    [key, is, expected].join(" "),
  );

/** The same arguments in fewer sets, in which none comes twice: a start of a program takes a third of a second. */
const together = (all: readonly Arguments[]): Arguments[] =>
  all.reduce<Record<string, string>[]>((sets, one) => {
    const free = sets.find((set) => Object.keys(one).every((name) => !(name in set)));
    if (free === undefined) return [...sets, { ...one }];
    Object.assign(free, one);
    return sets;
  }, []);

/** So many programs at a time. */
async function side<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += 4) {
    results.push(...(await Promise.all(items.slice(from, from + 4).map(work))));
  }
  return results;
}

describe.each(components)("%s", (component) => {
  const { taken, refused } = argumentCases[component];
  let usual: string;
  beforeAll(async () => {
    usual = await end(component, {});
    expect(usual).not.toBe("");
  });

  it("takes what the real program takes, and refuses what it refuses", async () => {
    const all = [...taken, ...refused];
    const starts = async (extra: Arguments) => ({
      extra,
      starts: (await end(component, extra)) === usual,
    });

    expect(all.filter((extra) => complaints(component, extra).length > 0)).toEqual(refused);
    const sets = together(taken);
    expect(await side([...sets, ...refused], starts)).toEqual([
      ...sets.map((extra) => ({ extra, starts: true })),
      ...refused.map((extra) => ({ extra, starts: false })),
    ]);
  });

  it("knows every flag that the program's --help lists", async () => {
    const { stdout, stderr } = await run(built(programs[component]), ["--help"]);

    const listed = `${stdout}\n${stderr}`.matchAll(/^ +(?:-[a-zA-Z], )?--([a-z0-9][a-z0-9.-]*)/gm);
    const names = [...new Set([...listed].map(([, name]) => name!))].filter(
      // etcd 3.7 still lists two that it has removed.
      (name) => component !== "etcdExtraArgs" || !/^discovery(-proxy)?$/.test(name),
    );
    expect(names.length).toBeGreaterThan(50);
    expect(Object.keys(known(component).flags)).toEqual(expect.arrayContaining(names));
  });

  it("knows what every feature gate of the program can be", async () => {
    const gates = Object.entries(known(component).featureGates).map(
      ([name, state]) => [name, state.split(" ")] as const,
    );
    const changed = (is: string) => (is === "true" ? "false" : "true");

    const defaults = gates
      .filter(([, [stage]]) => stage !== "PRE-ALPHA")
      .map(([name, [, is]]) => `${name}=${is}`);
    expect(await end(component, { "feature-gates": defaults.join(",") })).toBe(usual);

    const locked = gates.filter(([, [, , lock]]) => lock === "locked").slice(0, 8);
    for (const [name, [, is]] of locked) {
      const extra = { "feature-gates": `${name}=${changed(is!)}` };
      expect(await end(component, extra)).toContain(name);
      expect(complaints(component, extra)).toEqual([expect.stringContaining(`can only be ${is}`)]);
    }
  });

  it("has nothing in the table of owned arguments that the program does not have", () => {
    for (const { minor } of minors) {
      const names = Object.keys(knownArguments(component, `${minor}.0`).flags);
      expect(names).toEqual(expect.arrayContaining(Object.keys(ownedArguments[component])));
    }
  });
});

const settingsOf = (proxyMode: string, kubeProxy: Values): Settings => ({
  ...validSettings,
  proxyMode: proxyMode as Settings["proxyMode"],
  kubeProxy,
});

async function takes(settings: Settings): Promise<boolean> {
  const path = join(folder, "config.conf");
  const configuration = kubeProxyConfiguration(settings);
  writeFileSync(path, stringify({ ...configuration, clientConnection: { kubeconfig: nowhere } }));
  const { code, stderr } = await run(built("kube-proxy"), ["--config", path]);
  expect(code).not.toBe(0);
  return stderr.includes(nowhere);
}

it("takes what the real kube-proxy takes, and refuses what it ends at", async () => {
  const found: object[] = [];
  for (const [mode, value] of [...startings, ...endings]) {
    const settings = settingsOf(mode, value);
    const isTaken = kubeProxyProblems(settings).length === 0;
    found.push({ mode, value, starts: await takes(settings), isTaken });
  }

  expect(found).toEqual([
    ...startings.map(([mode, value]) => ({ mode, value, starts: true, isTaken: true })),
    ...endings.map(([mode, value]) => ({ mode, value, starts: false, isTaken: false })),
  ]);
});
