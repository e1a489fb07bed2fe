import { hasIssuer } from "../logins";
import { entry, found, Problem, toRemove } from "../problem";
import { Settings } from "../settings";

/**
 * Azure takes 50 tags of a resource. A bootstrap step has up to a dozen of this program's own, and
 * policies and operators add theirs.
 *
 * @see https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations
 */
const mostTags = 30;

const longestName = 512;
const longestNameOfAccount = 128;
const longestValue = 256;

/** What is wrong with the tags of all resources. */
export function tagProblems(settings: Settings): Problem[] {
  const { tags } = settings;
  const names = Object.keys(tags);
  // A storage account has the documents of the cluster's issuer.
  const longest = hasIssuer(settings) ? longestNameOfAccount : longestName;
  const problem = (name: string, expected: string, is = found(tags[name])): Problem => ({
    key: entry("tags", name),
    is,
    expected,
    // Pulumi has no path to a name that is empty.
    fix: toRemove(name === "" ? "tags" : entry("tags", name)),
  });
  const ofEach = Object.entries(tags).flatMap(([name, value], index): (Problem | false)[] => [
    (name.trim() !== name || name === "" || name.length > longest) &&
      problem(name, `a name of 1 to ${longest} characters, without spaces around it`),
    /[<>%&\\?/]/.test(name) &&
      problem(name, "a name without < > % & \\ ? /, which Azure refuses in names of tags"),
    /^(microsoft|azure|windows)/i.test(name) &&
      problem(
        name,
        "a name that begins with none of microsoft, azure and windows, which Azure keeps for itself",
      ),
    /^zoned-/i.test(name) &&
      problem(name, "a name that does not begin with zoned-, by which this program's own tags do"),
    names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) < index &&
      problem(name, "each name once, since Azure takes upper and lower case for the same"),
    value.length > longestValue &&
      problem(
        name,
        `a value of at most ${longestValue} characters`,
        `is ${value.length} characters long`,
      ),
    // The disk driver reads one text with all of them, and cuts names and values at these.
    /[,=]/.test(name) &&
      problem(name, "a name without a comma or =, at which the disk driver cuts"),
    value.includes(",") && problem(name, "a value without a comma, at which the disk driver cuts"),
  ]);
  const tooMany = names.length > mostTags && {
    key: "tags",
    is: `has ${names.length} tags`,
    expected: `at most ${mostTags}, since Azure takes 50 of a resource, and this program and others have some of their own`,
    fix: toRemove(entry("tags", names.at(-1)!)),
  };
  return [...ofEach, tooMany].filter((one) => one !== false);
}
