/** How the engine prints a step of a preview, and what its event log calls the same. */
const operations: Readonly<Record<string, string>> = {
  create: "create",
  update: "update",
  delete: "delete",
  replace: "replace",
  "create replacement": "create-replacement",
  "delete original": "delete-replaced",
  refresh: "refresh",
};

const line =
  /^ *\S+ +(?<type>\S+:\S+) (?<name>\S+) (?<operation>[a-z]+(?: replacement| original)?)(\[retain\])? *(\[.*)?$/;

/** Components come and go with what is in them, and providers with their resources. */
const component = /^(zoned:|pulumi:)/;

const colours = new RegExp(String.raw`${"\u001b"}\[[0-9;]*m`, "g");

/**
 * The steps that a preview announced, such as `update zoned-dev-nsg`; undefined where none came
 * before the operation itself.
 *
 * Read from what the engine prints: over its preview's event log it writes that of the operation.
 */
export function plannedSteps(stdout: string): string[] | undefined {
  const [, preview, operation] =
    /^Previewing [^\n]*\n(.*?)^(Updating|Refreshing|Destroying) /ms.exec(
      stdout.replaceAll(colours, ""),
    ) ?? [];
  if (preview === undefined || operation === undefined) return undefined;
  return preview.split("\n").flatMap((text) => {
    const { type = "", name, operation: words = "" } = line.exec(text)?.groups ?? {};
    const step = operations[words];
    return step === undefined || component.test(type) ? [] : [`${step} ${name}`];
  });
}
