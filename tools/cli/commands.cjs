// Every npm command with its options: what --help prints, and what is refused, before there are packages.
"use strict";

/**
 * `value` names an option's value; without it the option is a flag. `default` is the value where the
 * option is not given, `usually` tells of one that the command works out. `read` makes the value of
 * the text, and throws what was expected. `file` is where the command is; those without `rehearses`
 * need nothing but packages. `passesOn` is set where another program has options of its own.
 */

const whole = (least, most, expected) => (text) => {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new Error(expected);
};

const atLeastOne = whole(1, Infinity, "a whole number from 1");

function scale(text) {
  const value = Number(text);
  if (text !== "" && value >= 0.1 && value <= 1) return value;
  throw new Error("a factor from 0.1 to 1");
}

function listening(text) {
  const [, address, digits] = /^\[?([^[\]]+?)\]?:(\d+)$/.exec(text) ?? [];
  const port = Number(digits);
  if (address !== undefined && port <= 65_535) return { address, port };
  throw new Error("ADDRESS:PORT, such as 10.0.0.4:8080");
}

/** In milliseconds. */
function duration(text) {
  const [, number, unit] = /^(\d+)([smh])$/.exec(text) ?? [];
  if (unit === undefined) {
    throw new Error("a whole number with its unit, such as 90s, 10m or 1h");
  }
  return Number(number) * { s: 1000, m: 60_000, h: 3_600_000 }[unit];
}

const rehearsalFolder = {
  value: "folder",
  about: "where the rehearsal keeps everything",
  usually: ".local-azure in the checkout",
};

const stackOfCluster = {
  stack: {
    value: "name",
    about: "the stack",
    usually: "local, or machines where a rehearsal has real ones",
  },
  state: {
    value: "folder",
    about: "the stack is a rehearsal's, in this folder",
    usually: "without --stack that of npm start",
  },
};

const zoned = { file: "tools/cli/zoned.ts", rehearses: true };

module.exports = {
  start: {
    ...zoned,
    about: "Sets everything up and runs pulumi up, then prints how to use the cluster.",
    options: {
      stack: {
        value: "name",
        about: "whose settings to rehearse: local, dev, prod or machines",
        usually: "local, or machines with real ones",
      },
      machines: {
        value: "kind",
        about: "what machines are",
        choices: ["simulated", "qemu"],
        default: "simulated",
      },
      scale: {
        value: "factor",
        about: "how much of its size's memory a real machine gets",
        read: scale,
        usually: "0.75",
      },
      port: {
        value: "number",
        about: "first of seven ports in a row for the local Azure",
        read: whole(1024, 65_529, "a port from 1024 to 65529; the six after it are used too"),
        usually: "any free ones",
      },
      state: rehearsalFolder,
    },
  },
  stop: {
    ...zoned,
    about: "Runs pulumi destroy, ends every process and removes every file of the rehearsal.",
    options: {
      discard: { about: "remove everything without pulumi destroy" },
      state: rehearsalFolder,
    },
  },
  azure: {
    file: "tools/cli/azure.ts",
    about:
      "Lets the local Azure announce something to a machine of a rehearsal, and do it once the machine has approved it, " +
      "or when its time has come: a scheduled event.",
    args: {
      name: "words",
      about:
        "event, the machine, and what is done to it: Reboot, Redeploy, Freeze, Preempt or Terminate",
    },
    options: {
      notice: {
        value: "time",
        about: "how long before: 30s, 10m",
        read: duration,
        usually: "the least that Azure gives",
      },
      state: rehearsalFolder,
    },
    after: ["Example: npm run azure -- event zoned-local-workers-1 Redeploy"],
  },
  recover: {
    file: "tools/cli/recover.ts",
    about:
      "Repairs a stack's state from Azure after a pulumi up that was killed or cut off, so that pulumi up goes on. " +
      "Uses the pulumi, the backend, the passphrase and the Azure credentials of this shell. Changes the state only, " +
      "nothing in Azure.",
    options: {
      stack: { value: "name", about: "the stack, as in pulumi up --stack", required: true },
      "config-file": {
        value: "file",
        about: "the stack's settings, as in pulumi up --config-file",
      },
      copies: {
        value: "folder",
        about: "where a copy of the state as it was is kept, readable by its owner only",
        usually: ".recover in the checkout",
      },
      "dry-run": { about: "print what would be looked for, and change nothing" },
    },
    after: [
      "Exit codes: 0 recovered, or nothing to recover; 1 failed, or nothing was found and pulumi preview is refused; " +
        "2 wrong usage; 130 interrupted.",
      "Interrupted or failed, it goes on when it is run again.",
    ],
  },
  image: {
    file: "tools/cli/image.ts",
    about:
      "Makes a gallery image for a stack's machines, with packages and images in it, in a stack of its own, <stack>-image: a machine " +
      "runs the same first boot, is generalised and captured, and is deleted. Uses the pulumi, the backend, the passphrase and the " +
      "Azure credentials of this shell. Where the image of these settings is there already, it changes nothing.",
    options: {
      stack: { value: "name", about: "the stack whose settings the image is for", required: true },
      "config-file": {
        value: "file",
        about: "that stack's settings, as in pulumi up --config-file",
      },
      destroy: {
        about: "delete the gallery with all its images, and its stack; machines of them go on",
      },
    },
    after: [
      "Writes image.<stack>.json: what the image has, packages by version and images by digest.",
      "Exit codes: 0 the image is there, or all is deleted; 1 failed; 2 wrong usage; 130 interrupted.",
      "Interrupted or failed, it goes on when it is run again.",
    ],
  },
  doctor: {
    file: "tools/cli/doctor.ts",
    about:
      "Compares a running cluster with its stack's outputs: a line per check, and what to do about each problem. " +
      "A stack on Azure is read by the pulumi, the backend and the passphrase of this shell. Changes nothing but a " +
      "Lease of its own, which shows that etcd takes writes.",
    options: {
      ...stackOfCluster,
      json: { about: "print one JSON document" },
      wait: {
        value: "time",
        about: "look again until it is healthy, for so long: 90s, 10m",
        read: duration,
        usually: "once",
      },
    },
    after: [
      "Example: npm run --silent doctor -- --stack prod --json",
      "Exit codes: 0 healthy; 1 not healthy; 2 could not look: no such stack, no outputs, the API does not answer, or " +
        "wrong usage; 130 interrupted.",
    ],
  },
  report: {
    file: "tools/cli/doctor.ts",
    about:
      "Writes what a living cluster is made of into one Markdown file, to attach to an issue: the doctor's checks, " +
      "versions of nodes and add-ons, conditions and dates. Reads no Secret.",
    options: {
      ...stackOfCluster,
      output: {
        value: "file",
        about: "the file",
        usually: "zoned-report-<stack>.md in this folder",
      },
    },
    after: [
      "Exit codes: 0 the file was written; 2 it was not: no such stack, no outputs, the API does not answer, or wrong " +
        "usage; 130 interrupted.",
    ],
  },
  picture: {
    file: "tools/cli/picture.ts",
    about:
      "Draws a stack as it is into one SVG: zones, machines, addresses, balancers with their rules and pools, disks, and " +
      "what is not healthy. A stack on Azure is read by the pulumi, the backend and the passphrase of this shell, and " +
      "Azure with the login of its az. Changes nothing but the doctor's Lease.",
    options: {
      ...stackOfCluster,
      output: { value: "file", about: "the file", usually: "<stack>.svg in this folder" },
    },
    after: [
      "Exit codes: 0 the file was written, also where the cluster's API does not answer: the picture says so; 2 it was not: no " +
        "such stack, no outputs, Azure does not answer, or wrong usage; 130 interrupted.",
    ],
  },
  mirror: {
    ...zoned,
    about: "Fills a folder with what machines without internet fetch, and serves it.",
    options: {
      folder: { value: "folder", about: "where the mirror is", usually: "one in the cache" },
      system: {
        value: "name",
        about: "what the machines run",
        choices: ["ubuntu-24.04", "debian-13"],
        usually: "Ubuntu where its archive answers",
      },
      serve: { value: "address:port", about: "serve it there until Ctrl-C", read: listening },
    },
  },
  trace: {
    file: "tools/cli/trace.ts",
    about: "Follows a new connection's first packet through the rules of one node.",
    args: {
      name: "dumps",
      about: "folder or files with what the node has, recognised by content",
    },
    options: {
      to: {
        value: "address:port",
        about: "where the packet goes; /tcp, /udp or /sctp behind it",
      },
      service: {
        value: "namespace/name",
        about: "or to which Service; :PORT behind it, by name or number",
      },
      batch: { value: "file", about: "or many queries, one a line as JSON; answers are JSON too" },
      from: {
        value: "origin",
        about: "where it comes from: pod, node or outside",
        default: "pod",
      },
      source: { value: "address", about: "and its source address" },
      json: { about: "answer as JSON" },
      svg: { value: "file", about: "draw the path" },
      node: { value: "name", about: "take the dumps from this node of a living cluster" },
      dump: { value: "folder", about: "only take them, into a new folder" },
      kubeconfig: { value: "file", about: "of that cluster", usually: "as kubectl" },
      context: { value: "name", about: "in the kubeconfig" },
    },
    after: [
      "Examples:",
      "  npm run trace -- --to 10.96.0.10:53/udp dumps/",
      "  npm run trace -- --service kube-system/kube-dns:dns --from node dumps/",
      "  npm run --silent trace -- --json --from outside --source 203.0.113.7 --to '[fd00::a]:443' dumps/",
      "  npm run --silent trace -- --batch queries.json dumps/",
      "  npm run trace -- --node worker-1 --to 10.96.0.10:53/udp --svg dns.svg",
      "  npm run trace -- --node worker-1 --dump dumps/",
      "",
      "Exit codes: 0 an answer, whichever it is; 2 bad input; 1 a failure on the way. See docs/tracing.md.",
    ],
  },
  compare: {
    file: "tools/cli/trace.ts",
    about: "Counts what kube-proxy keeps in the kernel, dump by dump, or measures its modes.",
    args: { name: "dumps", about: "a folder or file for each node or mode" },
    options: {
      json: { about: "answer as JSON" },
      measure: { about: "run the real kube-proxy here and write docs/proxy-modes.md" },
      "virtual-machine": {
        about: "with --measure: in a virtual machine, whose kernel has IPVS (needs root)",
      },
    },
    after: [
      "Examples:",
      "  npm run compare -- iptables/ ipvs/ nftables/",
      "  npm run --silent compare -- --json before/ after/",
      "  npm run compare -- --measure",
      "  npm run compare -- --measure --virtual-machine",
      "",
      "A dash is what no dump in that folder says.",
    ],
  },
  lint: {
    file: "tools/cli/zoned.ts",
    about: "Runs eslint and prettier over the whole checkout.",
  },
  test: {
    ...zoned,
    about:
      "Runs eslint, prettier, type check, shellcheck and the tests, with the real engine and control plane; those of " +
      "living clusters are npm run test:day-2.",
    args: { name: "jest", about: "what to pass to jest, such as the path of one test file" },
    passesOn: true,
  },
  "test-machines": {
    ...zoned,
    about:
      "Writes a report of what is true of real machines, and ends with exit code 1 when something is not.",
    args: {
      name: "chapter",
      about: "all but conformance-all without any",
      choices: [
        ...["one", "conformance", "conformance-all", "alone", "three", "maintenance"],
        ...["maintenance-worker", "traffic"],
        ...["upgrade", "patch", "upgrade-three", "landing-zone", "landing-zone-patch"],
        ...["authorities", "identity", "image", "restore", "restore-three"],
      ],
    },
    options: {
      keep: { about: "leave the machines when something is not true, to look into them" },
      folder: {
        value: "folder",
        about: "where machines and report are",
        usually: "test-machines in the cache",
      },
    },
  },
  "test-faults": {
    ...zoned,
    about:
      "Kills processes and lets Azure go wrong at every request of an update and a destroy: a report of how each ended, " +
      "and exit code 1 when one did not end well. Goes on where an earlier run ended.",
    args: {
      name: "scenario",
      about: "all of them without any",
      choices: ["first-up", "replacement", "resize", "labels", "destroy"],
    },
    options: {
      only: { value: "pattern", about: "only cases whose name matches this regular expression" },
      sample: {
        value: "number",
        about: "only so many, of as many kinds of request as it can",
        read: atLeastOne,
      },
      jobs: { value: "number", about: "how many at a time", read: atLeastOne, default: 2 },
      list: { about: "name the cases and try none" },
      fresh: { about: "try again what an earlier run has tried" },
      folder: {
        value: "folder",
        about: "where the report is",
        usually: "test-faults in the cache",
      },
    },
  },
  bench: {
    ...zoned,
    about:
      "Measures the figures of docs/performance.md, as ratios within one run; exit code 1 when one is too high.",
  },
  settings: {
    file: "tools/cli/settings.ts",
    about: "Writes docs/settings.md from Pulumi.yaml.",
  },
  firewall: {
    file: "tools/cli/firewall.ts",
    about:
      "Writes docs/firewall.md: every host that machines and updates ask, by the versions of now.",
  },
  outdated: {
    file: "tools/cli/outdated.ts",
    about:
      "Lists what is behind its newest release: npm packages, Go modules of the programs that are built here, and what " +
      "clusters are made of. Changes nothing. Asks the npm registry, the Go module proxy (npm_config_registry and GOPROXY " +
      "where they are set) and GitHub.",
    after: [
      "A dash: no newer release of that minor. What may be raised, and what Kubernetes decides: CONTRIBUTING.md.",
      "Exit codes: 0 one of them answered, whatever it said; 1 none did; 2 wrong usage; 130 interrupted.",
    ],
  },
  arguments: {
    file: "tools/cli/arguments.ts",
    about:
      "Writes what each Kubernetes program takes on its command line, by minor version, for the checks of settings; needs Go, and takes two minutes with warm caches.",
  },
};
