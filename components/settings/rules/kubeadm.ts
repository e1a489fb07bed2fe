import { parseAllDocuments } from "yaml";

import { etcdOf, minorOf } from "../../versions";
import { isDuration } from "../times";
import {
  entry,
  found,
  meant,
  nearest,
  Problem,
  toRemove,
  toSet,
  unknownNames,
  wants,
} from "../problem";
import { isRecord } from "../read";
import type { Component, Settings } from "../settings";
import { wrongType } from "./argument-types";
import { maxPods, wrongValue } from "./argument-values";
import { knownArguments, ownedArguments, programs, replacementOf } from "./known-arguments";
import { lacking } from "./needed-values";

/** Fields of v1beta4's Timeouts. */
const timeoutNames = [
  "controlPlaneComponentHealthCheck",
  "kubeletHealthCheck",
  "kubernetesAPICall",
  "etcdAPICall",
  "tlsBootstrap",
  "discovery",
  "upgradeManifests",
];

const patchTargets = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubeletconfiguration",
  "corednsdeployment",
];

/** kubeadm only warns about a file of another name, and the patch would silently be missing. */
const patchName = new RegExp(
  `^(${patchTargets.join("|")})[A-Za-z0-9_-]*(\\+(strategic|merge|json))?\\.(yaml|json)$`,
);

type ArgumentSettings = Pick<Settings, "kubeadm" | "kubernetesVersion" | "cni">;

function argumentProblems(
  component: Component,
  { kubeadm, kubernetesVersion, cni }: ArgumentSettings,
): Problem[] {
  const extra = kubeadm[component];
  const known = knownArguments(component, kubernetesVersion);
  const program = `${programs[component]} ${minorOf(kubernetesVersion)}`;
  return Object.entries(extra).flatMap(([name, value]) => {
    const key = entry(`kubeadm.${component}`, name);
    const refused = (is: string, expected: string): Problem[] => [
      { key, is, expected, fix: toRemove(key) },
    ];
    if (!/^[a-z0-9][a-z0-9.-]*$/.test(name)) {
      return refused(
        "is not the name of an argument",
        "lower-case letters, digits and -, without the dashes in front",
      );
    }
    if (!Object.hasOwn(known.flags, name)) {
      const like = replacementOf(component, name, known) ?? meant(name, Object.keys(known.flags));
      return refused(
        "is no argument of that component",
        [`one that ${program} has`, like].filter(Boolean).join("; "),
      );
    }
    const owner = ownedArguments[component][name];
    if (owner !== undefined) {
      return refused(
        "is not yours to set",
        `it left out, since all parts of a cluster have to agree on it: ${owner}`,
      );
    }
    if (
      name === "encryption-provider-config-automatic-reload" &&
      extra["encryption-provider-config"] === undefined
    ) {
      return refused(
        "is not yours to set",
        "it left out, since this program changes keys in that way; or an encryption-provider-config of your own beside it",
      );
    }
    if (component === "kubeletExtraArgs" && /[\s"'\\]/.test(value)) {
      return refused(
        found(value),
        "no spaces, quotation marks or backslashes, at which systemd would divide the kubelet's arguments",
      );
    }
    const expected =
      wrongType(known.flags[name]!, value) ??
      wrongValue(value, { component, name, cni, known, extra }) ??
      lacking(component, name, value);
    return expected === undefined ? [] : refused(`is ${JSON.stringify(value)}`, expected);
  });
}

const recordsIn = (value: unknown): Record<string, unknown>[] => [value].flat().filter(isRecord);

/** What a patch gives etcd's own container for an image. */
const etcdImages = (content: unknown): unknown[] =>
  Array.isArray(content)
    ? recordsIn(content)
        .filter(({ path }) => path === "/spec/containers/0/image")
        .map(({ value }) => value)
    : recordsIn(content)
        .flatMap(({ spec }) => recordsIn(spec))
        .flatMap(({ containers }) => recordsIn(containers))
        .filter(({ name }) => name === "etcd")
        .map(({ image }) => image);

/** As kubeadm compares tags: of semantic versions one with -0 comes before the same without. */
const isLater = (tag: string, than: string): boolean =>
  `${tag}~`.localeCompare(`${than}~`, "en", { numeric: true }) > 0;

/** kubeadm passes over an etcd that is newer than its own (performEtcdStaticPodUpgrade), and says so in its output alone. */
function etcdPatchProblems(at: string, contents: readonly unknown[], version: string): Problem[] {
  const own = etcdOf(version);
  return contents.flatMap(etcdImages).flatMap((image) => {
    const tag = /:v?(\d[\w.-]*)(@\S+)?$/.exec(`${image}`)?.[1];
    if (tag === undefined || !isLater(tag, own)) return [];
    return [
      {
        key: at,
        is: `has etcd run ${image}`,
        expected:
          `no etcd newer than the ${own} of Kubernetes ${version}: kubeadm upgrade leaves such a one as it is, ` +
          "and no flag, certificate or CA of a later update would reach it",
        fix: toRemove(at),
      },
    ];
  });
}

/** What a patch gives a kubelet for maxPods. */
const maxPodsIn = (content: unknown): unknown[] =>
  recordsIn(content).map((one) => (one["path"] === "/maxPods" ? one["value"] : one["maxPods"]));

const kubeletPatchProblems = (
  at: string,
  contents: readonly unknown[],
  settings: ArgumentSettings,
): Problem[] =>
  contents.flatMap(maxPodsIn).flatMap((value) => {
    // 0 stands for the kubelet's own number there.
    const expected = value ? maxPods(String(value), settings) : undefined;
    return expected === undefined
      ? []
      : [{ key: at, is: `sets maxPods to ${JSON.stringify(value)}`, expected, fix: toRemove(at) }];
  });

/** The documents of a text; none where it is no YAML, or one has an alias without an anchor, which is no error of parsing. */
function documentsIn(text: string): unknown[] {
  const documents = parseAllDocuments(text);
  if (documents.some(({ errors }) => errors.length > 0)) return [];
  try {
    return documents.map((document) => document.toJS() as unknown);
  } catch {
    return [];
  }
}

function patchProblems(file: string, text: string, settings: ArgumentSettings): Problem[] {
  const at = entry("kubeadm.patches", file);
  if (!patchName.test(file)) {
    return [
      {
        key: at,
        is: "is not a name that kubeadm takes a patch from",
        expected:
          "target, suffix, +type and .yaml or .json, with one of the targets " +
          `${patchTargets.join(", ")} (the nearest is ` +
          `${nearest(file.split(/[+.]/)[0] ?? "", patchTargets)})`,
        fix: toRemove(at),
      },
    ];
  }
  const contents = documentsIn(text);
  const isList = file.includes("+json.");
  const isValid =
    contents.length > 0 &&
    contents.every((content) => (isList ? Array.isArray(content) : isRecord(content)));
  if (isValid) {
    if (file.startsWith("etcd")) return etcdPatchProblems(at, contents, settings.kubernetesVersion);
    return file.startsWith("kubelet") ? kubeletPatchProblems(at, contents, settings) : [];
  }
  return [
    {
      key: at,
      is: found(text),
      expected: isList ? "a list of JSON patch operations" : "an object in YAML or JSON",
      fix: toSet(at, isList ? "[]" : "{}"),
    },
  ];
}

/** Azure takes 256 KiB of a bootstrap step in base64, of which the script, CAs and registries have most. */
const maxPatchCharacters = 32_000;

function patchSizeProblems(patches: Settings["kubeadm"]["patches"]): Problem[] {
  const sizes = Object.entries(patches).map(([file, { length }]) => ({ file, length }));
  const all = sizes.reduce((sum, { length }) => sum + length, 0);
  const [largest] = sizes.sort((a, b) => b.length - a.length);
  if (largest === undefined || all <= maxPatchCharacters) return [];
  return [
    {
      key: "kubeadm.patches",
      is: `is ${all} characters in all, ${largest.length} of them in ${largest.file}`,
      expected: `at most ${maxPatchCharacters}, since Azure limits what a machine is sent`,
      fix: toRemove(entry("kubeadm.patches", largest.file)),
    },
  ];
}

/** Whether this ignores all of kubeadm's preflight checks; kubeadm then takes no single one, and compares in lower case. */
export const isEveryCheck = (check: string): boolean => check.toLowerCase() === "all";

function ignoredProblems(checks: readonly string[]): Problem[] {
  const index = checks.findIndex(isEveryCheck);
  const others = checks.filter((check) => !isEveryCheck(check));
  if (index === -1 || others.length === 0) return [];
  const key = `kubeadm.ignorePreflightErrors[${index}]`;
  return [
    {
      key,
      is: `is ${JSON.stringify(checks[index])} beside ${others.join(", ")}`,
      expected: "either all or single checks, since kubeadm does not start with both",
      fix: toRemove(key),
    },
  ];
}

/** What is wrong with what an operator adds to kubeadm's configuration. */
export const kubeadmProblems = (settings: ArgumentSettings): Problem[] => [
  ...(
    [
      "apiServerExtraArgs",
      "controllerManagerExtraArgs",
      "schedulerExtraArgs",
      "etcdExtraArgs",
      "kubeletExtraArgs",
    ] as const
  ).flatMap((name) => argumentProblems(name, settings)),
  ...ignoredProblems(settings.kubeadm.ignorePreflightErrors),
  ...unknownNames("kubeadm.timeouts", Object.keys(settings.kubeadm.timeouts), timeoutNames),
  ...Object.entries(settings.kubeadm.timeouts)
    .filter(([name, text]) => timeoutNames.includes(name) && !isDuration(text))
    .map(([name, text]) =>
      wants(`kubeadm.timeouts.${name}`, text, "a duration such as 10m0s or 90s", "10m0s"),
    ),
  ...Object.entries(settings.kubeadm.patches).flatMap(([file, text]) =>
    patchProblems(file, text, settings),
  ),
  ...patchSizeProblems(settings.kubeadm.patches),
];
