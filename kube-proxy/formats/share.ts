/** Old iptables prints probabilities that are off by as much: its thirds are not quite thirds. */
const tolerance = 1e-5;
const largestDenominator = 64;

/** `1/3`, where it is one; `12.34 %` else. */
export function share(probability: number): string {
  const inverse = Math.round(1 / probability);
  if (Math.abs(1 / inverse - probability) < tolerance / inverse) return whole(1, inverse);
  for (let below = 1; below <= largestDenominator; below += 1) {
    const above = Math.round(probability * below);
    if (above > 0 && Math.abs(above / below - probability) < tolerance) return whole(above, below);
  }
  return percent(probability);
}

const whole = (above: number, below: number): string => (below === 1 ? "all" : `${above}/${below}`);

export const percent = (probability: number): string =>
  `${(probability * 100).toPrecision(probability < 0.1 ? 2 : 4)} %`;
