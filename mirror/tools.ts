import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import {
  etcdTool,
  github,
  type GoBuild,
  kubernetesTool,
  nodeTool,
  ofEtcd,
  pinned,
  type Tool,
} from "../programs/tools";
import { checkout } from "../shared/checkout";
import { sha256 } from "./hash";

const modules = join(checkout, "programs", "modules");

/** Plugins of containernetworking, as kubernetes-cni has them. */
export const cniPlugins = [
  ...["bandwidth", "bridge", "dhcp", "dummy", "firewall", "host-device", "host-local", "ipvlan"],
  ...["loopback", "macvlan", "portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf"],
];

function cni(): Tool {
  const version = pinned("cni-plugins", "github.com/containernetworking/plugins");
  return {
    name: "cni-plugins",
    version,
    binaries: cniPlugins,
    builds: [{ module: "cni-plugins", ldflags: "-s -w" }],
    typical: "1 min",
    downloads: (os, arch) => {
      const url = `${github}/containernetworking/plugins/releases/download/v${version}/cni-plugins-${os}-${arch}-v${version}.tgz`;
      return [
        {
          url,
          sha256: { kind: "list", url: `${url}.sha256` },
          members: Object.fromEntries(cniPlugins.map((name) => [name, `./${name}`])),
        },
      ];
    },
  };
}

function coredns(): Tool {
  const version = pinned("coredns", "github.com/coredns/coredns");
  return {
    name: "coredns",
    version,
    binaries: ["coredns"],
    builds: [{ module: "coredns", ldflags: "-s -w" }],
    typical: "3 min",
    downloads: (os, arch) => {
      const url = `${github}/coredns/coredns/releases/download/v${version}/coredns_${version}_${os}_${arch}.tgz`;
      return [
        {
          url,
          sha256: { kind: "list", url: `${url}.sha256` },
          members: { coredns: "coredns" },
        },
      ];
    },
  };
}

const etcdctl: Tool = {
  ...ofEtcd("etcdctl", ["etcdctl", "etcdutl"]),
  builds: [{ module: "etcdctl", ldflags: "-s -w" }],
};

/** Programs whose source is in a module's folder: another source is another version. */
export function ofOurOwn(
  module: string,
  builds: Pick<GoBuild, "packages" | "binary">,
  rest: {
    readonly version: string;
    readonly binaries: readonly string[];
    readonly typical: string;
  },
): Tool {
  const folder = join(modules, module);
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.go$|go\.mod$/.test(path))
    .sort()
    .map((path) => readFileSync(join(folder, path), "utf8"));
  return {
    ...rest,
    name: module,
    version: `${rest.version}-${sha256(sources.join()).slice(0, 12)}`,
    builds: [{ module, ldflags: "-s -w", ...builds }],
    downloads: () => undefined,
  };
}

/** Copies images from registry to registry. */
export const craneTool: Tool = crane();

function crane(): Tool {
  const version = pinned("crane", "github.com/google/go-containerregistry");
  const release = `${github}/google/go-containerregistry/releases/download/v${version}`;
  return {
    name: "crane",
    version,
    binaries: ["crane"],
    builds: [{ module: "crane", ldflags: "-s -w" }],
    typical: "1 min",
    downloads: (os, arch) => {
      const system = `${os === "darwin" ? "Darwin" : "Linux"}_${arch === "amd64" ? "x86_64" : arch}`;
      return [
        {
          url: `${release}/go-containerregistry_${system}.tar.gz`,
          sha256: { kind: "list", url: `${release}/checksums.txt` },
          members: { crane: "crane" },
        },
      ];
    },
  };
}

const flannel = ofOurOwn(
  "flannel",
  { packages: ["./flanneld"] },
  {
    version: pinned("flannel", "github.com/flannel-io/flannel"),
    binaries: ["flanneld"],
    typical: "2 min",
  },
);

/** What upstream's end-to-end tests run in pods. */
const agnhost: Tool = {
  name: "agnhost",
  version: pinned("agnhost", "k8s.io/kubernetes"),
  binaries: ["agnhost"],
  builds: [{ module: "agnhost", ldflags: "-s -w" }],
  typical: "1 min",
  downloads: () => undefined,
};

const pause = ofOurOwn(
  "pause",
  { packages: ["."], binary: "pause" },
  { version: "1", binaries: ["pause"], typical: "5 s" },
);

/** What the packages of pkgs.k8s.io are made of, where those cannot be had. */
export const packageTools: readonly Tool[] = [kubernetesTool, cni(), nodeTool];

/**
 * What images are made of, by the registry that they cannot be had from; the longest build first.
 */
export const imageTools: Readonly<Record<string, readonly Tool[]>> = {
  "registry.k8s.io": [kubernetesTool, coredns(), etcdTool, agnhost, etcdctl, pause, nodeTool],
  "ghcr.io": [flannel],
};

/** Where to find each program. */
export const toolOf = (binary: string): Tool => {
  const all = [...packageTools, ...Object.values(imageTools).flat(), craneTool];
  const found = all.find(({ binaries }) => binaries.includes(binary));
  if (!found) throw new Error(`no tool has ${binary}`);
  return found;
};
