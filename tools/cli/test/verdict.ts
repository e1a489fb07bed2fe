/** What jest reports by `--json`, as far as it is needed. */
export interface JestResult {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numRuntimeErrorTestSuites: number;
  readonly testResults: readonly {
    /** The test file. */
    readonly name: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly title: string;
      readonly ancestorTitles: readonly string[];
    }[];
  }[];
}

export interface StaticCheck {
  readonly name: string;
  readonly passed: boolean;
}

/** How many claims are named for one reason: with `-t`, jest skips all others. */
const namedAtMost = 50;

/**
 * The last lines of `npm test`: the checks, the counts, and what was skipped and why.
 *
 * @param result undefined when jest ended before it could report
 */
export function verdictOf(
  checks: readonly StaticCheck[],
  result: JestResult | undefined,
): { readonly lines: readonly string[]; readonly passed: boolean } {
  const passed = result?.numPassedTests ?? 0;
  const failed =
    (result ? result.numFailedTests + result.numRuntimeErrorTestSuites : 1) +
    checks.filter((check) => !check.passed).length;
  const lines = [
    ...checks.map((check) => `${check.name}: ${check.passed ? "passed" : "FAILED, see above"}`),
    ...(result ? [] : ["tests: jest ended without a result, see above"]),
    `${passed} passed, ${failed} failed, ${result?.numPendingTests ?? 0} skipped`,
    ...(result ? skipped(result) : []),
  ];
  return { lines, passed: failed === 0 && passed > 0 };
}

function skipped({ testResults }: JestResult): string[] {
  const claims = new Map<string, string[]>();
  for (const { assertionResults } of testResults) {
    for (const { status, title, ancestorTitles } of assertionResults) {
      if (status !== "pending") continue;
      const { reason, claim } = split([...ancestorTitles, title]);
      claims.set(reason, [...(claims.get(reason) ?? []), claim]);
    }
  }
  return [...claims].flatMap(([reason, names]) => [
    `skipped, since ${reason}:`,
    ...names.slice(0, namedAtMost).map((name) => `  ${name}`),
    ...(names.length > namedAtMost ? [`  and ${names.length - namedAtMost} more`] : []),
  ]);
}

/** Takes the reason, which `tests/support/unless.ts` puts behind a title, out of a test's titles. */
function split(titles: readonly string[]): { reason: string; claim: string } {
  const mark = / \(skipped: (.*)\)$/;
  const reason = titles.map((title) => mark.exec(title)?.[1]).find((one) => one !== undefined);
  return {
    reason: reason ?? "the test says so, without a reason",
    claim: titles.map((title) => title.replace(mark, "")).join(" "),
  };
}
