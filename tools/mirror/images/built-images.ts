import { cloudProviderImages } from "../../../components/versions";
import { current, pinned, type Release, releases } from "../../programs/releases";
import { UserError } from "../../shared/user-error";
import type { ImageRecipe, LayerRecipe } from "./build-image";
import { partsOf } from "./image-layout";
import { versionedName } from "../mirrored-programs";

const binaries = (places: Readonly<Record<string, string>>): LayerRecipe => ({
  kind: "binaries",
  binaries: places,
});

const oneProgram = (binary: string, release: Release): ImageRecipe => ({
  layers: [binaries({ [`/usr/local/bin/${binary}`]: versionedName(binary, release) })],
  entrypoint: [`/usr/local/bin/${binary}`],
});

const commands = ["iptables", "ip6tables"].flatMap((name) =>
  ["", "-save", "-restore"].map((suffix) => [`/usr/sbin/${name}${suffix}`, "xtables-nft-multi"]),
);

/** Commands that write rules into a node's kernel; iptables with its nftables backend. */
const packetFilters: LayerRecipe = {
  kind: "packages",
  packages: ["conntrack", "ipset", "iptables", "kmod", "nftables"],
  links: Object.fromEntries(commands) as Record<string, string>,
};

const busybox: LayerRecipe = { kind: "busybox", folders: ["tmp"] };

/**
 * Commands that upstream's tests call in a pod: dig, curl, getent and OpenBSD's nc. dash is sh,
 * since busybox's sh prefers its own commands to others of the same name.
 */
const networkClients: LayerRecipe = {
  kind: "packages",
  packages: ["bind9-dnsutils", "curl", "dash", "iproute2", "libc-bin", "netcat-openbsd"],
  links: { "/usr/bin/nc": "nc.openbsd" },
};

interface BuiltImage {
  readonly recipe: ImageRecipe;
  /** What it is built from, in words. */
  readonly from: string;
  /** The version of its programs, without `v`, where the image's tag has to be the same. */
  readonly version?: string;
}

const kubernetes = (recipe: ImageRecipe, { version, sources }: Release): BuiltImage => ({
  recipe,
  from: `Go module k8s.io/kubernetes v${pinned(`${sources}kubernetes`, "k8s.io/kubernetes")}`,
  version,
});

const ofModule = (folder: string, module: string, recipe: ImageRecipe): BuiltImage => {
  const version = pinned(folder, module);
  return { recipe, from: `Go module ${module} v${version}`, version };
};

/** Azure's cloud provider, whose programs are there for the current Kubernetes version alone. */
const cloudProvider = (program: string): BuiltImage => ({
  ...ofModule("controllers", "sigs.k8s.io/cloud-provider-azure", oneProgram(program, current)),
  // There is no Go module of the tag.
  version: undefined,
});

const cloudProviders: Readonly<Record<string, () => BuiltImage>> = {
  [cloudProviderImages(current.version).controllerManager]: () =>
    cloudProvider("cloud-controller-manager"),
  [cloudProviderImages(current.version).nodeManager]: () => cloudProvider("cloud-node-manager"),
};

const busyboxAlone = (): BuiltImage => ({
  recipe: { layers: [busybox], command: ["sh"] },
  from: "Debian's busybox-static",
});

/** Images that can be built here, by their names without registry and tag. */
const recipes: Readonly<Record<string, (release: Release) => BuiltImage>> = {
  ...Object.fromEntries(
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler"].map((name) => [
      name,
      (release: Release) => kubernetes(oneProgram(name, release), release),
    ]),
  ),
  "kube-proxy": (release) => {
    const layers = [packetFilters, busybox, ...oneProgram("kube-proxy", release).layers];
    return kubernetes({ layers, entrypoint: ["kube-proxy"] }, release);
  },
  etcd: (release) =>
    ofModule(`${release.sources}etcd`, "go.etcd.io/etcd/server/v3", {
      layers: [
        binaries(
          Object.fromEntries(
            ["etcd", "etcdctl", "etcdutl"].map((name) => [
              `/usr/local/bin/${name}`,
              versionedName(name, release),
            ]),
          ),
        ),
      ],
    }),
  "coredns/coredns": (release) =>
    ofModule(`${release.sources}coredns`, "github.com/coredns/coredns", {
      layers: [binaries({ "/coredns": versionedName("coredns", release) })],
      entrypoint: ["/coredns"],
    }),
  pause: () => ({
    recipe: {
      layers: [binaries({ "/pause": "pause" })],
      entrypoint: ["/pause"],
      user: "65535:65535",
    },
    from: "a program of this repository (tools/programs/modules/pause)",
  }),
  "flannel-io/flannel": () => ({
    recipe: {
      layers: [packetFilters, busybox, binaries({ "/opt/bin/flanneld": "flanneld" })],
      entrypoint: ["/opt/bin/flanneld"],
    },
    from: `a main program of this repository (tools/programs/modules/flannel) over Go module github.com/flannel-io/flannel v${pinned("flannel", "github.com/flannel-io/flannel")}`,
  }),
  "metrics-server/metrics-server": () =>
    ofModule("metrics-server", "sigs.k8s.io/metrics-server", oneProgram("metrics-server", current)),
  "e2e-test-images/agnhost": () => ({
    recipe: {
      layers: [busybox, networkClients, binaries({ "/agnhost": "agnhost" })],
      entrypoint: ["/agnhost"],
      command: ["pause"],
    },
    from: `Go module k8s.io/kubernetes v${pinned("kubernetes", "k8s.io/kubernetes")}`,
  }),
  "e2e-test-images/glibc-dns-testing": () => ({
    recipe: { layers: [busybox, networkClients], command: ["sh"] },
    from: "Debian's bind9-dnsutils",
  }),
  "e2e-test-images/busybox": busyboxAlone,
  "library/busybox": busyboxAlone,
};

/**
 * How an image is built here; undefined if it cannot be.
 *
 * @throws UserError when its programs have another version than its tag
 */
export function builtImage(image: string): BuiltImage | undefined {
  const { name, tag } = partsOf(image);
  const make = cloudProviders[image] ?? recipes[name];
  if (!make) return undefined;
  const version = tag.replace(/^v/, "").replace(/-\d+$/, "");
  const candidates = releases.map(make);
  const found = candidates.find((one) => one.version === undefined || one.version === version);
  if (found) return found;
  throw new UserError(
    `${image} is wanted, and what it would be built from is ${candidates[0]!.from}: ` +
      "that module's go.mod in tools/programs/modules has to name the image's version",
  );
}
