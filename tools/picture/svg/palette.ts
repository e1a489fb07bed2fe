/** Each colour by its use: on a light page, and on a dark one. */
const colours = {
  page: ["#ffffff", "#0f1318"],
  region: ["#f5f7fa", "#151b22"],
  network: ["#eef2f7", "#1a222b"],
  zone: ["#ffffff", "#10161c"],
  card: ["#ffffff", "#1c242d"],
  edge: ["#ccd5df", "#36424f"],
  ink: ["#16202b", "#e6ebf1"],
  quiet: ["#56646f", "#9ba9b7"],
  good: ["#11703c", "#5fcf8e"],
  goodTint: ["#e2f4e9", "#15362a"],
  warn: ["#8a5300", "#f0b75a"],
  warnTint: ["#fdf0d9", "#3d2f14"],
  bad: ["#b3211b", "#ff958c"],
  badTint: ["#fdeae8", "#43201f"],
  unknown: ["#56646f", "#9ba9b7"],
  unknownTint: ["#e9edf2", "#2a333d"],
  lane0: ["#2463c4", "#78adff"],
  lane1: ["#8245b5", "#c99bf5"],
  lane2: ["#0a7d84", "#52ccd3"],
  lane3: ["#a8501c", "#f29e6c"],
} as const;

export type Colour = keyof typeof colours;

const lanes = ["lane0", "lane1", "lane2", "lane3"] as const;

/** The colour of a pool's lines; the fifth has the first one's again. */
export const laneColour = (index: number): Colour => lanes[index % lanes.length]!;

const rules = (theme: 0 | 1): string[] => [
  // A window may be larger than the picture.
  `svg{background:${colours.page[theme]}}`,
  ...Object.entries(colours).flatMap(([name, values]) => [
    `.f-${name}{fill:${values[theme]}}`,
    `.s-${name}{stroke:${values[theme]}}`,
  ]),
];

/** Colours by class, so that a page's theme chooses them. */
export const style = [
  "svg{display:block;margin:0 auto}",
  "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}",
  ".bold{font-weight:600}",
  ".mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}",
  ...rules(0),
  `@media (prefers-color-scheme:dark){${rules(1).join("")}}`,
].join("\n");
