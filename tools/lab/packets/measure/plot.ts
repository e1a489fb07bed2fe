import { init } from "echarts";

import type { Measurement } from "./lab-task";

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
