import type { PayloadFile } from "../kubeadm/payload-file";
import { type ProxySettings, proxyVariables, wantsLogin } from "../settings/proxy";
import type { Settings } from "../settings/settings";
import { machineMirror } from "../settings/sources";
import { minorFor, versions } from "../versions";
import { scriptFile } from "./payload";

/** Azure's ceiling on a machine's custom data, counted before base64. */
const maxCustomDataBytes = 65_535;

/** The settings that a first boot depends on. */
type BootSettings = Pick<
  Settings,
  "kubernetesVersion" | "containerRuntime" | "mirror" | "registries"
> &
  ProxySettings;

/** Single quotes keep a POSIX shell from reading anything into a value. */
const quoted = (value: string) => `'${value.replaceAll("'", `'\\''`)}'`;

/** Settings of first-boot.sh, as shell assignments. */
const environment = ({
  kubernetesVersion,
  containerRuntime,
  mirror,
  registries,
}: BootSettings): string =>
  Object.entries({
    KUBERNETES_VERSION: kubernetesVersion,
    ETCD_IMAGE_TAG: minorFor(kubernetesVersion).etcd ?? "",
    CONTAINER_RUNTIME: containerRuntime,
    CONTAINERD_AT_LEAST: versions.containerdAtLeast,
    DOCKER_AT_LEAST: versions.dockerAtLeast,
    CRI_DOCKERD_VERSION: versions.criDockerd,
    CREDENTIAL_PROVIDER_VERSION:
      registries.length > 0 ? minorFor(kubernetesVersion).cloudProvider : "",
    MIRROR: machineMirror(mirror),
  })
    .map(([name, value]) => `${name}=${quoted(value)}\n`)
    .join("");

/** What a first boot is made of, for a living machine that installs another version by it. */
export const firstBootFiles = (settings: BootSettings, apiName: string): PayloadFile[] => [
  scriptFile("first-boot.sh"),
  { path: "/etc/zoned/first-boot.env", mode: "0600", content: environment(settings) },
  ...proxyFiles(settings, apiName),
];

/** By which custom data is another one, and replaces the machine, where it has nothing else of the settings. */
const runtimeFile = ({ containerRuntime }: BootSettings): PayloadFile => ({
  path: "/etc/zoned/container-runtime",
  mode: "0644",
  content: `${containerRuntime}\n`,
});

/**
 * First-boot instructions, encoded the way Azure wants them, the same for all machines of a
 * cluster. What add-ons' images an image has to have, no living machine is told of: nobody asks there.
 *
 * A machine that exists keeps what it was made with (`ignoredOnExisting` in generation.ts). There is no secret in
 * it, since Azure leaves it readable on the machine's disk. Behind a proxy with a login nothing can be
 * fetched before the bootstrap step has brought that, among its secrets: this step then runs the first boot.
 */
export function customData(
  settings: BootSettings,
  apiName: string,
  addOnImages: readonly string[],
): string {
  const files = [
    ...firstBootFiles(settings, apiName),
    {
      path: "/etc/zoned/add-on-images",
      mode: "0644",
      content: addOnImages.map((image) => `${image}\n`).join(""),
    },
  ];
  const document = {
    // Debian's images rewrite /etc/hosts at every boot otherwise, and the API's own name is lost.
    manage_etc_hosts: "localhost",
    write_files: (wantsLogin(settings.httpProxy) ? [runtimeFile(settings)] : files).map(
      ({ path, mode, content }) => ({ path, permissions: mode, content }),
    ),
    ...(!wantsLogin(settings.httpProxy) && { runcmd: [["/opt/zoned/first-boot.sh"]] }),
  };
  // cloud-init reads YAML, and JSON is YAML that needs no escaping rules of our own.
  const bytes = Buffer.from(`#cloud-config\n${JSON.stringify(document, null, 1)}\n`);
  if (bytes.length > maxCustomDataBytes) {
    throw new Error(
      `custom data is ${bytes.length} bytes, and Azure takes at most ${maxCustomDataBytes}; ` +
        `cloud-init/first-boot.sh alone is ${Buffer.byteLength(files[0]!.content)}: shorten it`,
    );
  }
  return bytes.toString("base64");
}

/**
 * The proxy's variables for a machine: first-boot.sh has apt, containerd and Docker use it, and gives what it makes of
 * it the same mode. Empty files say that there is none, to a machine that had one. curl reads `http_proxy` in
 * lower case alone.
 */
export const proxyFiles = (settings: ProxySettings, apiName: string): PayloadFile[] => [
  {
    path: "/etc/zoned/proxy.env",
    mode: wantsLogin(settings.httpProxy) ? "0600" : "0644",
    content: proxyVariables(settings, apiName)
      .flatMap(({ name, value }) => [name, name.toLowerCase()].map((one) => `${one}='${value}'\n`))
      .join(""),
  },
  { path: "/etc/zoned/proxy-ca.crt", mode: "0644", content: settings.httpProxy?.ca ?? "" },
];
