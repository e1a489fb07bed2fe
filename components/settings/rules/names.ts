import { hasIssuer } from "../logins";
import { entry, found, Problem, findings, toRemove, toSet, wants } from "../problem";
import { Settings } from "../settings";
import { parseRange } from "./ranges";

/**
 * Regions without availability zones, and a neighbour that has them. Others are asked for at deploy
 * time.
 */
const zonelessRegions: Readonly<Record<string, string>> = {
  australiacentral: "australiaeast",
  australiacentral2: "australiaeast",
  australiasoutheast: "australiaeast",
  brazilsoutheast: "brazilsouth",
  canadaeast: "canadacentral",
  francesouth: "francecentral",
  germanynorth: "germanywestcentral",
  jioindiacentral: "centralindia",
  jioindiawest: "centralindia",
  koreasouth: "koreacentral",
  norwaywest: "norwayeast",
  southafricawest: "southafricanorth",
  southindia: "centralindia",
  switzerlandwest: "switzerlandnorth",
  uaecentral: "uaenorth",
  ukwest: "uksouth",
  westindia: "centralindia",
  westus: "westus2",
};

/**
 * Azure refuses the first. The second are Ubuntu's users and groups, by base-passwd and by what its image for Azure has:
 * an account gets a group of its name, and useradd makes no account where that group is there.
 */
const takenUserNames = new Set(
  (
    "1 123 a actuser adm admin admin1 admin2 administrator aspnet backup console david guest " +
    "john owner root server sql support support_388945a0 sys test test1 test2 test3 user user1 user2 " +
    "user3 user4 user5 " +
    "_apt audio bin cdrom daemon dialout dip disk fax floppy games irc kmem list lp mail man news nobody nogroup " +
    "operator plugdev proxy sasl shadow src staff sudo sync tape tty users utmp uucp video voice www-data " +
    "_chrony _ssh crontab dhcpcd fwupd-refresh input kvm landscape lxd messagebus netdev polkitd pollinate rdma render " +
    "sgx sshd syslog systemd-journal systemd-network systemd-resolve systemd-timesync tcpdump tss uuidd"
  ).split(" "),
);

export const longestClusterName = 40;

/** Azure wants 3 characters of an identity; the cloud provider adopts a balancer `…-internal`. */
function clusterNameProblems({ clusterName }: Settings): Problem[] {
  const wrong = (expected: string): Problem[] => [
    wants("clusterName", clusterName, expected, "zoned-dev"),
  ];
  if (!/^[a-z][a-z0-9-]+[a-z0-9]$/.test(clusterName) || clusterName.length > longestClusterName) {
    return wrong(
      `3 to ${longestClusterName} lower-case letters, digits and -, from a letter to a letter or digit, ` +
        "since machines, nodes and a DNS name start with it",
    );
  }
  if (clusterName.endsWith("-internal")) {
    return wrong("another ending than -internal, which the cloud provider gives its own balancers");
  }
  if (/microsoft|windows|^login|^xbox/.test(clusterName)) {
    return wrong("a name without microsoft, windows, login or xbox, which Azure keeps for itself");
  }
  return [];
}

function locationProblems({ location }: Settings): Problem[] {
  if (!/^[a-z]+[a-z0-9]*$/.test(location)) {
    const plain = location.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
    const better = /^[a-z]/.test(plain) ? plain : "westeurope";
    return [wants("location", location, "the short name of an Azure region", better)];
  }
  if (!Object.hasOwn(zonelessRegions, location)) return [];
  const neighbour = zonelessRegions[location]!;
  return [wants("location", location, "a region with availability zones", neighbour)];
}

function zoneProblems({ zones }: Settings): Problem[] {
  if (zones.length === 0) {
    return [wants("zones[0]", undefined, "at least one availability zone", "1")];
  }
  const free = ["1", "2", "3"].filter((zone) => !zones.includes(zone));
  return zones.flatMap((zone, index) => {
    const key = `zones[${index}]`;
    if (!["1", "2", "3"].includes(zone)) {
      const better = free.shift();
      const fix = better === undefined ? toRemove(key) : toSet(key, better);
      return {
        key,
        is: found(zone),
        expected: "1, 2 or 3, as Azure numbers a region's zones",
        fix,
      };
    }
    if (zones.indexOf(zone) === index) return [];
    return { key, is: found(zone), expected: "no zone twice", fix: toRemove(key) };
  });
}

function loginProblems({ adminUsername }: Settings): Problem[] {
  if (/^[a-z_][a-z0-9_-]{0,31}$/.test(adminUsername) && !takenUserNames.has(adminUsername))
    return [];
  return [
    wants(
      "adminUsername",
      adminUsername,
      "a name that Linux takes (32 lower-case letters, digits, _ and - at most) and " +
        "that neither Azure nor Ubuntu has taken",
      "azureuser",
    ),
  ];
}

function sanProblems({ apiExtraSans }: Settings): Problem[] {
  const label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
  const name = new RegExp(`^(?=.{1,253}$)(\\*\\.)?${label}(\\.${label})*$`);
  // No domain of the highest level is a number: what ends in one is meant for an address.
  const isValid = (san: string) =>
    /(^|\.)\d+$/.test(san) ? parseRange(`${san}/32`) !== undefined : name.test(san);
  return apiExtraSans.flatMap((san, index) =>
    isValid(san)
      ? []
      : {
          key: `apiExtraSans[${index}]`,
          is: found(san),
          expected: "a DNS name or an IPv4 address, without scheme or port",
          fix: toRemove(`apiExtraSans[${index}]`),
        },
  );
}

/** What is wrong with what Azure, Linux or DNS must know by its name. */
export const nameProblems = (settings: Settings): Problem[] => [
  ...clusterNameProblems(settings),
  ...locationProblems(settings),
  ...zoneProblems(settings),
  ...loginProblems(settings),
  ...sanProblems(settings),
];

/**
 * Azure takes 50 tags of a resource. A bootstrap step has up to a dozen of this program's own, and
 * policies and operators add theirs.
 *
 * @see https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations
 */
const mostTags = 30;

/** Azure DNS keeps no tag of another name, and takes fewer (azure-rest-api-specs #11748, #13600). */
export const dnsTagName = /^[A-Za-z_][\w.-]*$/;
const mostTagsOfZone = 15;

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
  const ofZone = names.filter((name) => dnsTagName.test(name));
  // Of a group of others each resource says whose it is.
  const room = mostTagsOfZone - (settings.resourceGroup === "" ? 0 : 1);
  const makesZone = settings.apiAccess === "private" && settings.apiName === "";
  const tooManyOfZone = makesZone &&
    ofZone.length > room && {
      key: "tags",
      is: `has ${ofZone.length} tags that a private DNS zone takes`,
      expected: `at most ${room}, since Azure takes ${mostTagsOfZone} of one; or apiName, with which this program makes none`,
      fix: toRemove(entry("tags", ofZone.at(-1)!)),
    };
  return findings(...ofEach, tooMany, tooManyOfZone);
}

/**
 * What is wrong with the name of a resource group that exists already.
 *
 * @see https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
 */
export function resourceGroupProblems({
  resourceGroup,
}: Pick<Settings, "resourceGroup">): Problem[] {
  if (resourceGroup === "" || /^[\p{L}\p{N}_().-]{0,89}[\p{L}\p{N}_()-]$/u.test(resourceGroup)) {
    return [];
  }
  const [, name = "platform"] = /\/resourceGroups\/([^/]+)/i.exec(resourceGroup) ?? [];
  return [
    wants(
      "resourceGroup",
      resourceGroup,
      "the name of a resource group as `az group list --query '[].name'` prints it, not its id",
      name,
    ),
  ];
}
