import { pinned } from "../../programs/pinned";
import { current, type Release, releases } from "../../programs/releases";
import { UserError } from "../../shared/user-error";
import type { ImageRecipe } from "./build-image";
import { partsOf } from "./image-layout";
import type { LayerRecipe } from "./layers";
import { programOf } from "../tools";

const binaries = (places: Readonly<Record<string, string>>): LayerRecipe => ({
  kind: "binaries",
  binaries: places,
});

const alone = (binary: string, release: Release): ImageRecipe => ({
  layers: [binaries({ [`/usr/local/bin/${binary}`]: programOf(binary, release) })],
  entrypoint: [`/usr/local/bin/${binary}`],
});

const commands = ["iptables", "ip6tables"].flatMap((name) =>
  ["", "-save", "-restore"].map((suffix) => [`/usr/sbin/${name}${suffix}`, "xtables-nft-multi"]),
);

/** What writes rules into a node's kernel; iptables in the form that writes nftables. */
const network: LayerRecipe = {
  kind: "packages",
  packages: ["conntrack", "ipset", "iptables", "kmod", "nftables"],
  links: Object.fromEntries(commands) as Record<string, string>,
};

const busybox: LayerRecipe = { kind: "busybox", folders: ["tmp"] };

/**
 * What upstream's tests call in a pod: dig, curl, getent, and the nc that says what it does. dash
 * is its sh instead of busybox, which takes its own commands for all others of the same name.
 */
const askers: LayerRecipe = {
  kind: "packages",
  packages: ["bind9-dnsutils", "curl", "dash", "iproute2", "libc-bin", "netcat-openbsd"],
  links: { "/usr/bin/nc": "nc.openbsd" },
};

interface OwnImage {
  readonly recipe: ImageRecipe;
  /** Of what it is made, in words. */
  readonly from: string;
  /** The version that it is made of, without its `v`, where that has to be the image's own. */
  readonly version?: string;
}

const kubernetes = (recipe: ImageRecipe, { version, sources }: Release): OwnImage => ({
  recipe,
  from: `Go module k8s.io/kubernetes v${pinned(`${sources}kubernetes`, "k8s.io/kubernetes")}`,
  version,
});

const ofModule = (folder: string, module: string, recipe: ImageRecipe): OwnImage => {
  const version = pinned(folder, module);
  return { recipe, from: `Go module ${module} v${version}`, version };
};

/** Images that can be made here, by their name without registry and tag. */
const ownImages: Readonly<Record<string, (release: Release) => OwnImage>> = {
  ...Object.fromEntries(
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler"].map((name) => [
      name,
      (release: Release) => kubernetes(alone(name, release), release),
    ]),
  ),
  "kube-proxy": (release) => {
    const layers = [network, busybox, ...alone("kube-proxy", release).layers];
    return kubernetes({ layers, entrypoint: ["kube-proxy"] }, release);
  },
  etcd: (release) =>
    ofModule(`${release.sources}etcd`, "go.etcd.io/etcd/server/v3", {
      layers: [
        binaries(
          Object.fromEntries(
            ["etcd", "etcdctl", "etcdutl"].map((name) => [
              `/usr/local/bin/${name}`,
              programOf(name, release),
            ]),
          ),
        ),
      ],
      entrypoint: ["/usr/local/bin/etcd"],
    }),
  "coredns/coredns": (release) =>
    ofModule(`${release.sources}coredns`, "github.com/coredns/coredns", {
      layers: [binaries({ "/coredns": programOf("coredns", release) })],
      entrypoint: ["/coredns"],
    }),
  pause: () => ({
    recipe: {
      layers: [binaries({ "/pause": "pause" })],
      entrypoint: ["/pause"],
      user: "65535:65535",
    },
    from: "a program of our own (tools/programs/modules/pause)",
  }),
  "flannel-io/flannel": () => ({
    recipe: {
      layers: [network, busybox, binaries({ "/opt/bin/flanneld": "flanneld" })],
      entrypoint: ["/opt/bin/flanneld"],
    },
    from: `a main of our own (tools/programs/modules/flannel) over Go module github.com/flannel-io/flannel v${pinned("flannel", "github.com/flannel-io/flannel")}`,
  }),
  "metrics-server/metrics-server": () =>
    ofModule("metrics-server", "sigs.k8s.io/metrics-server", alone("metrics-server", current)),
  "e2e-test-images/agnhost": () => ({
    recipe: {
      layers: [busybox, askers, binaries({ "/agnhost": "agnhost" })],
      entrypoint: ["/agnhost"],
      command: ["pause"],
    },
    from: `Go module k8s.io/kubernetes v${pinned("kubernetes", "k8s.io/kubernetes")}`,
  }),
  "e2e-test-images/glibc-dns-testing": () => ({
    recipe: { layers: [busybox, askers], command: ["sh"] },
    from: "Debian's bind9-dnsutils",
  }),
  "library/busybox": () => ({
    recipe: { layers: [busybox], command: ["sh"] },
    from: "Debian's busybox-static",
  }),
};

/**
 * How an image is made here; undefined where it cannot be.
 *
 * @throws UserError when what it would be made of has another version than its tag says
 */
export function ownImage(image: string): OwnImage | undefined {
  const { name, tag } = partsOf(image);
  const make = ownImages[name];
  if (!make) return undefined;
  const version = tag.replace(/^v/, "").replace(/-\d+$/, "");
  const candidates = releases.map(make);
  const own = candidates.find((one) => one.version === undefined || one.version === version);
  if (own) return own;
  throw new UserError(
    `${image} is wanted, and what it would be made of is ${candidates[0]!.from}: ` +
      "that module's go.mod in tools/programs/modules has to name the image's version",
  );
}
