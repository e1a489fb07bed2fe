import { init } from "echarts";

import { UserError } from "../../../shared/user-error";
import type { Mode } from "../cluster";
import type { Measurement } from "./lab-task";

export interface Measured {
  /** What the figures depend on, one line each. */
  readonly machine: readonly string[];
  readonly all: readonly Measurement[];
}

/** What has been measured: on this host's kernel, and in a virtual machine. */
export interface Places {
  readonly host?: Measured;
  readonly virtualMachine?: Measured;
}

/** docs/proxy-modes.md, whose every figure comes from the measurements. */
export function pageOf({ host, virtualMachine }: Places): string {
  const all = (virtualMachine ?? host)?.all ?? [];
  return `# kube-proxy's modes, measured

Made whole by these commands, and made anew by them:

\`\`\`sh
npm run compare -- --measure                    # on this host's kernel
npm run compare -- --measure --virtual-machine  # in a virtual machine, whose kernel has IPVS
\`\`\`

Each runs the real etcd, kube-apiserver and kube-proxy in namespaces of their own, makes Services of ${all[0]?.endpoints} endpoints each, and
starts kube-proxy as kubeadm configures it. Nothing of it is left afterwards.

- *rules*, *chains*, *sets and maps*: what the node's kernel has for IPv4 after the first sync.
- *IPVS destinations*: the endpoints of all its virtual servers.
- *first sync*: what kube-proxy itself reports (\`sync_full_proxy_rules_duration_seconds\`, of IPVS \`sync_proxy_rules_duration_seconds\`).
- *change in force*: from the API taking another endpoint for one more Service of a single pod, until a connection reaches that pod. Median and
  worst of five, each after a pause, since kube-proxy writes at most once a second.
- *CPU*: processor time of kube-proxy and of the tools it runs.
${host ? onHost(host) : ""}${virtualMachine ? inVirtualMachine(virtualMachine) : ""}
## Is it 120 entries against a constant?

An old rule says that 10 Services of 6 pods are 120 entries for iptables, and a constant number for what came after it. Between ${ends(all)}
Services, each further one adds:

${rule(all)}
`;
}

const listed = (lines: readonly string[]): string => lines.map((line) => `- ${line}`).join("\n");

const onHost = ({ machine, all }: Measured): string => `
## On a host

${listed(machine)}

${tableOf(all)}

The same as [CSV](proxy-modes.csv), and as a picture:

![rules, first sync and changes over the number of Services](proxy-modes.svg)
`;

const inVirtualMachine = ({ machine, all }: Measured): string => `
## In a virtual machine

${listed(machine)}

Its processors may be emulated, 10 to 20 times slower than real ones. So each time is shown as a multiple of what iptables took for as many
Services; the seconds are in the [CSV](proxy-modes.csv).

${ratiosOf(all)}
`;

const ends = (all: readonly Measurement[]): string =>
  `${all[0]?.services} and ${all.at(-1)?.services}`;

function rule(all: readonly Measurement[]): string {
  const modes = [...new Set(all.map(({ mode }) => mode))];
  return modes
    .map((mode) => {
      const some = all.filter((one) => one.mode === mode);
      const [least, most] = [some[0], some.at(-1)];
      if (!least || !most || least === most)
        return `- ${mode}: one number of Services shows nothing`;
      const each = (figure: (one: Measurement) => number | null): number =>
        ((figure(most) ?? 0) - (figure(least) ?? 0)) / (most.services - least.services);
      const rules = each((one) => one.rules);
      const ofEndpoints = each((one) => one.endpointRules);
      const members = each((one) => one.members);
      const destinations = each((one) => one.destinations);
      const besides = (least.rules ?? 0) - rules * least.services;
      return [
        `- ${mode}: ${fixed(rules)} rules, ${fixed(ofEndpoints)} of them in chains of single endpoints, ${fixed(members)} members of sets and`,
        `  ${fixed(destinations)} destinations of IPVS, besides ${fixed(besides)} rules that are always there. For 10 Services that is ${fixed(10 * ofEndpoints)} in chains of endpoints and`,
        `  ${fixed(10 * (rules + members + destinations))} in all. ${met[mode]}`,
      ].join("\n");
    })
    .join("\n");
}

const fixed = (value: number): string => `${Math.round(value * 100) / 100}`;

/** What the number of Services means for a packet. */
const met: Readonly<Record<Mode, string>> = {
  iptables: "A new connection is compared with one rule after the other until its Service's comes.",
  nftables:
    "A new connection finds its Service in one look into a map, and its endpoint in another.",
  ipvs: "A new connection finds its Service in one look into a table.",
};

interface Column {
  readonly title: string;
  value(one: Measurement): string;
}

const seconds = (value: number): string => (value < 1 ? value.toFixed(3) : value.toFixed(2));

/** What is counted, in the order of the table. */
const counted: readonly Column[] = [
  { title: "mode", value: ({ mode }) => mode },
  { title: "Services", value: ({ services }) => `${services}` },
  { title: "rules", value: ({ rules }) => `${rules}` },
  { title: "chains", value: ({ chains }) => `${chains}` },
  { title: "sets and maps", value: ({ sets }) => `${sets ?? 0}` },
  { title: "their members", value: ({ members }) => `${members ?? 0}` },
  { title: "IPVS destinations", value: ({ destinations }) => `${destinations ?? 0}` },
];

/** What is timed, all in seconds. */
const timed: readonly { readonly title: string; value(one: Measurement): number }[] = [
  { title: "first sync", value: ({ firstSyncSeconds }) => firstSyncSeconds },
  { title: "its CPU", value: ({ firstCpuSeconds }) => firstCpuSeconds },
  { title: "change in force", value: ({ changeSeconds }) => changeSeconds },
  { title: "worst", value: ({ worstChangeSeconds }) => worstChangeSeconds },
  { title: "its CPU", value: ({ changeCpuSeconds }) => changeCpuSeconds },
];

export const tableOf = (all: readonly Measurement[]): string =>
  markdown(all, [
    ...counted,
    ...timed.map(({ title, value }) => ({
      title: `${title}, s`,
      value: (one: Measurement) => seconds(value(one)),
    })),
  ]);

/** With each time as a multiple of what iptables takes for as many Services. */
export function ratiosOf(all: readonly Measurement[]): string {
  const ratio = (one: Measurement, value: (one: Measurement) => number): string => {
    const base = all.find(({ mode, services }) => mode === "iptables" && services === one.services);
    return base === undefined ? "–" : (value(one) / value(base)).toFixed(2);
  };
  return markdown(all, [
    ...counted,
    ...timed.map(({ title, value }) => ({
      title: `${title}, ×`,
      value: (one: Measurement) => ratio(one, value),
    })),
  ]);
}

/** Rows with cells of equal width, which read well on a terminal and are a table in Markdown. */
function markdown(all: readonly Measurement[], columns: readonly Column[]): string {
  const rows = [
    columns.map(({ title }) => title),
    ...all.map((one) => columns.map(({ value }) => value(one))),
  ];
  const widths = columns.map((_, index) =>
    Math.max(...rows.map((cells) => cells[index]?.length ?? 0)),
  );
  const [head = "", ...body] = rows.map(
    (cells) => `| ${cells.map((cell, index) => pad(cell, index, widths)).join(" | ")} |`,
  );
  const line = `| ${widths.map((width, index) => (index === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [head, line, ...body].join("\n");
}

const pad = (cell: string, index: number, widths: readonly number[]): string =>
  index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0);

/** The figures of a measurement by their columns. */
const csvColumns = {
  services: "services",
  endpoints: "endpoints",
  rules: "rules",
  endpointRules: "endpoint_rules",
  chains: "chains",
  sets: "sets",
  members: "members",
  destinations: "destinations",
  firstSyncSeconds: "first_sync_seconds",
  firstCpuSeconds: "first_sync_cpu_seconds",
  changeSeconds: "change_seconds",
  worstChangeSeconds: "worst_change_seconds",
  changeCpuSeconds: "change_cpu_seconds",
} as const satisfies Record<Exclude<keyof Measurement, "mode">, string>;

const figures = Object.keys(csvColumns) as (keyof typeof csvColumns)[];

const head = ["place", "mode", ...Object.values(csvColumns)].join(",");

/** A line for each measurement, below comments that say on which machine of each place. */
export function csvOf(places: Places): string {
  const all = Object.entries(places) as [keyof Places, Measured][];
  const cells = (one: Measurement) => figures.map((figure) => round(one[figure] ?? 0));
  return [
    ...all.flatMap(([place, { machine }]) => machine.map((line) => `# ${place}: ${line}`)),
    head,
    ...all.flatMap(([place, { all }]) => all.map((one) => [place, one.mode, ...cells(one)].join())),
  ]
    .map((line) => `${line}\n`)
    .join("");
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

/** What `csvOf` wrote. */
export function measuredIn(file: string, text: string): Places {
  const lines = text.trimEnd().split("\n");
  const first = lines.findIndex((line) => !line.startsWith("#"));
  if (lines[first] !== head) {
    throw new UserError(
      `${file}: expected the columns ${head}, got ${lines[first]}; delete it, and measure anew`,
    );
  }
  const places: Record<string, { machine: string[]; all: Measurement[] }> = {};
  const at = (place: string) => (places[place] ??= { machine: [], all: [] });
  for (const line of lines.slice(0, first)) {
    const [, place = "", text = ""] = /^# (\w+): (.*)$/.exec(line) ?? [];
    at(place).machine.push(text);
  }
  for (const line of lines.slice(first + 1)) {
    const [place = "", mode, ...cells] = line.split(",");
    const values = Object.fromEntries(figures.map((figure, n) => [figure, Number(cells[n])]));
    at(place).all.push({ mode: mode as Mode, ...values } as unknown as Measurement);
  }
  return places;
}

type Figure = (one: Measurement) => number;

const panels: readonly (readonly [title: string, figure: Figure])[] = [
  ["rules and set members", ({ rules, members }) => (rules ?? 0) + (members ?? 0)],
  ["first sync, seconds", ({ firstSyncSeconds }) => firstSyncSeconds],
  ["changed endpoint in force, seconds", ({ changeSeconds }) => changeSeconds],
  ["processor time of a change, seconds", ({ changeCpuSeconds }) => changeCpuSeconds],
];

const width = 960;

const height = 720;

const margin = { x: 70, y: 70 };

const panel = { width: width / 2 - 100, height: height / 2 - 110 };

const place = (index: number) => ({
  left: margin.x + (index % 2) * (width / 2),
  top: margin.y + Math.floor(index / 2) * (height / 2 - 20),
});

/** Lines over the number of Services, both axes by powers of ten. */
export function plotOf(all: readonly Measurement[]): string {
  const modes = [...new Set(all.map(({ mode }) => mode))];
  const chart = init(null, null, { renderer: "svg", ssr: true, width, height });
  chart.setOption({
    animation: false,
    backgroundColor: "#ffffff",
    legend: { top: 10, data: modes },
    title: panels.map(([text], index) => ({
      text,
      ...place(index),
      top: place(index).top - 28,
      textStyle: { fontSize: 14, fontWeight: "normal" },
    })),
    grid: panels.map((_, index) => ({ ...place(index), ...panel })),
    xAxis: panels.map((_, gridIndex) => ({
      gridIndex,
      type: "log",
      name: "Services",
      nameLocation: "middle",
      nameGap: 26,
    })),
    yAxis: panels.map((_, gridIndex) => ({ gridIndex, type: "log" })),
    series: panels.flatMap(([, figure], index) =>
      modes.map((mode) => ({
        name: mode,
        type: "line",
        xAxisIndex: index,
        yAxisIndex: index,
        data: all
          .filter((one) => one.mode === mode)
          .map((one) => [one.services, Math.max(figure(one), 0.001)]),
      })),
    ),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}
