import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { customData, firstBootFiles } from "../../../components/machine/custom-data";
import { minors, versions } from "../../../components/versions";
import type { Settings } from "../../../components/settings/settings";
import { checkout } from "../../../tools/shared/checkout";
import { validSettings } from "../../support/sample";
import { testFolder } from "../../support/test-folder";
import { installed, output } from "../../support/tools";

const apiName = "zoned-test-1a2b3c.westeurope.cloudapp.azure.com";

const decoded = (settings = validSettings, images: readonly string[] = []) =>
  Buffer.from(customData(settings, apiName, images), "base64").toString();

const document = (settings = validSettings, images: readonly string[] = []) => {
  const [header, ...lines] = decoded(settings, images).split("\n");
  expect(header).toBe("#cloud-config");
  return JSON.parse(lines.join("\n"));
};

const fileAt = (path: string, settings = validSettings, images: readonly string[] = []) =>
  document(settings, images).write_files.find((file: { path: string }) => file.path === path);

/** What a shell has after reading the settings file. */
const shellValue = (name: string, settings = validSettings) =>
  output("bash", [
    "-euc",
    'eval "$1"; printf %s "${!2}"',
    "shell",
    fileAt("/etc/zoned/first-boot.env", settings).content,
    name,
  ]);

it.each(["docker", "cri-dockerd", "containerd"] as const)(
  "is what cloud-init's own schema accepts, for %s",
  (containerRuntime) => {
    const folder = testFolder();
    const path = join(folder, "user-data");
    writeFileSync(
      path,
      decoded({ ...validSettings, containerRuntime, mirror: "https://mirror.example.com" }),
    );

    const said = output(installed("cloud-init", "cloud-init"), ["schema", "--config-file", path]);

    expect(said).toContain("Valid");
  },
);

it("ships first-boot.sh byte for byte, and runs it", () => {
  const shipped = readFileSync(join(checkout, "cloud-init", "first-boot.sh"), "utf8");

  expect(fileAt("/opt/zoned/first-boot.sh")).toEqual({
    path: "/opt/zoned/first-boot.sh",
    permissions: "0700",
    content: shipped,
  });
  expect(document().runcmd).toEqual([["/opt/zoned/first-boot.sh"]]);
});

it("keeps what a later step writes into /etc/hosts", () => {
  expect(document().manage_etc_hosts).toBe("localhost");
});

it("tells the script what to install, from the versions and from the settings", () => {
  expect(shellValue("KUBERNETES_VERSION")).toBe(validSettings.kubernetesVersion);
  expect(shellValue("ETCD_IMAGE_TAG")).toBe(minors[0].etcd ?? "");
  expect(shellValue("CONTAINER_RUNTIME")).toBe("docker");
  expect(shellValue("CONTAINERD_AT_LEAST")).toBe(versions.containerdAtLeast);
  expect(shellValue("DOCKER_AT_LEAST")).toBe(versions.dockerAtLeast);
  expect(shellValue("CRI_DOCKERD_VERSION")).toBe(versions.criDockerd);
  expect(shellValue("MIRROR")).toBe("");
});

it("says which add-ons' images an image must have, and tells no living machine, whose step would run for it", () => {
  const path = "/etc/zoned/add-on-images";

  expect(fileAt(path, validSettings, ["a.example/b:1", "c.example/d:2"]).content).toBe(
    "a.example/b:1\nc.example/d:2\n",
  );
  expect(firstBootFiles(validSettings, apiName).map((file) => file.path)).not.toContain(path);
});

it("sends machines to the mirror when it is an address, and not when it is a folder", () => {
  const mirror = (value: string) => shellValue("MIRROR", { ...validSettings, mirror: value });

  expect(mirror("https://mirror.example.com/zoned/")).toBe("https://mirror.example.com/zoned");
  expect(mirror("/srv/manifests")).toBe("");
});

it("gives a shell nothing to expand", () => {
  const mirror = 'https://mirror.example.com/it\'s $(touch /tmp/x) `y` \\ "z"';

  expect(shellValue("MIRROR", { ...validSettings, mirror })).toBe(mirror);
});

it.each([
  { change: { proxyMode: "nftables" as const } },
  { change: { cni: "flannel" as const } },
  { change: { controlPlaneCount: 1 } },
  { change: { apiExtraSans: ["kubernetes.example.com"] } },
  { change: { kubeadm: { ...validSettings.kubeadm, timeouts: { etcdAPICall: "5m0s" } } } },
])("has nothing in it that reaches living machines too: $change", ({ change }) => {
  expect(customData({ ...validSettings, ...change }, apiName, [])).toBe(
    customData(validSettings, apiName, []),
  );
});

it("refuses what Azure would refuse, and says by how much", () => {
  const mirror = `https://${"m".repeat(65_535)}.example.com`;

  expect(() => customData({ ...validSettings, mirror }, apiName, [])).toThrow(
    /is \d+ bytes, and Azure takes at most 65535/,
  );
});

it("has room for the longest CA that settings accept", () => {
  const httpProxy = { https: "", http: "", noProxy: [], ca: "c".repeat(16_000) };

  expect(fileAt("/etc/zoned/proxy-ca.crt", { ...validSettings, httpProxy }).content).toHaveLength(
    16_000,
  );
});

it("brings the proxy on the way to the internet, and what is reached without it", () => {
  const https = "http://proxy.example:3128";
  const settings = {
    ...validSettings,
    mirror: "https://mirror.example.com/zoned",
    httpProxy: {
      https,
      http: "",
      noProxy: [".firm.example", "*.b.example"],
      ca: "a certificate\n",
    },
  };

  const variables = output("bash", [
    "-euc",
    'eval "$1"; echo "$HTTPS_PROXY $https_proxy ${HTTP_PROXY-none}"; echo "$no_proxy"',
    "shell",
    fileAt("/etc/zoned/proxy.env", settings).content,
  ]).split("\n");

  expect(variables[0]).toBe(`${https} ${https} none`);
  expect(variables[1]!.split(",")).toEqual(
    expect.arrayContaining([
      ...["127.0.0.1", "169.254.169.254", "168.63.129.16", "172.16.0.0/16", "10.244.0.0/16"],
      ...["10.96.0.0/12", ".svc", ".cluster.local", "mirror.example.com", ".firm.example", apiName],
      // curl and Python read no star.
      ".b.example",
    ]),
  );
  expect(fileAt("/etc/zoned/proxy-ca.crt", settings).content).toBe("a certificate\n");
});

it("says to a machine that had a proxy that there is none", () => {
  expect(fileAt("/etc/zoned/proxy.env").content).toBe("");
  expect(fileAt("/etc/zoned/proxy-ca.crt").content).toBe("");
});

describe("behind a proxy with a login", () => {
  const behind = (password: string) => ({
    ...validSettings,
    httpProxy: { http: "", https: `http://me:${password}@p.example:1`, noProxy: [], ca: "a CA\n" },
  });

  it("brings the runtime's name alone, and has cloud-init run nothing: the bootstrap step does, which has the password", () => {
    expect(document(behind("hush"))).toEqual({
      manage_etc_hosts: "localhost",
      write_files: [
        { path: "/etc/zoned/container-runtime", permissions: "0644", content: "docker\n" },
      ],
    });
    const brought = firstBootFiles(behind("hush"), apiName).map(({ path, mode }) => [path, mode]);
    expect(brought).toEqual([
      ["/opt/zoned/first-boot.sh", "0700"],
      ["/etc/zoned/first-boot.env", "0600"],
      ["/etc/zoned/proxy.env", "0600"],
      ["/etc/zoned/proxy-ca.crt", "0644"],
    ]);
  });

  it("is the same with another password, and another one with another runtime, by which the machine is replaced", () => {
    const of = (password: string, change: Partial<Settings> = {}) =>
      customData({ ...behind(password), ...change }, apiName, ["a.example/b:c"]);
    expect(of("hushed")).toBe(of("hush"));
    expect(of("hush", { containerRuntime: "containerd" })).not.toBe(of("hush"));
  });
});
