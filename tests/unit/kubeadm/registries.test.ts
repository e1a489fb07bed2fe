import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";

import { parse } from "yaml";

import { configurationOf, kubeadmFiles } from "../../../components/kubeadm/kubeadm";
import {
  credentialProvider,
  registryCredentialFiles,
  registryHostFiles,
  registryLogin,
} from "../../../components/kubeadm/registries";
import { claimsOf } from "../../../tools/local-azure/machines/identity-token";
import { serverCertificate } from "../../../tools/local-azure/tests/support/plugins/fake-api";
import { askCredentialProvider, pluginApi } from "../../support/credential-provider";
import { listen } from "../../support/listen";
import { machine, specOf, validSettings } from "../../support/sample";
import { testFolder } from "../../support/test-folder";
import { installed } from "../../support/tools";
import { asRoot, itUnless } from "../../support/unless";

describe("registries", () => {
  const registries = ["ourimages.azurecr.io", "mirror01.azurecr.io"];
  const configFlag = "image-credential-provider-config";

  /** What kubeadm gives a kubelet by each way in which it starts one, by the file's name. */
  function flagsIn(servers: readonly string[]): Record<string, Record<string, string>> {
    const files = kubeadmFiles(specOf(validSettings, { registries: servers }), machine);
    return Object.fromEntries(
      ["init", "join", "kubelet"].map((name) => {
        const { content } = files.find(({ path }) => path === `/etc/zoned/kubeadm-${name}.yaml`)!;
        const { nodeRegistration } = parse(content.split("---\n")[0]!) as {
          nodeRegistration: { kubeletExtraArgs: { name: string; value: string }[] };
        };
        const flags = nodeRegistration.kubeletExtraArgs.map(
          (one) => [one.name, one.value] as const,
        );
        return [name, Object.fromEntries(flags)];
      }),
    );
  }

  it("has a kubelet that initializes, joins or is changed read the file that comes with it", () => {
    const files = kubeadmFiles(specOf(validSettings, { registries }), machine);

    for (const flags of Object.values(flagsIn(registries))) {
      const file = files.find(({ path }) => path === flags[configFlag]);
      expect(parse(file!.content)).toMatchObject({ kind: "CredentialProviderConfig" });
      expect(flags["image-credential-provider-bin-dir"]).toBe("/opt/zoned/credential-providers");
    }
  });

  it("gives a kubelet without registries none of it, since it would not start without the program", () => {
    expect(credentialProvider([])).toEqual({ flags: {}, files: [] });
    for (const flags of Object.values(flagsIn([]))) expect(flags).not.toHaveProperty(configFlag);
  });

  it("asks for a login to the registries that are named, whichever come first, and to no other", () => {
    const [file] = credentialProvider(registries).files;

    expect(parse(file!.content).providers).toEqual([
      expect.objectContaining({
        name: "acr-credential-provider",
        matchImages: ["mirror01.azurecr.io", "ourimages.azurecr.io"],
      }),
    ]);
    expect(credentialProvider([...registries].reverse())).toEqual(credentialProvider(registries));
  });

  it("starts kubelets anew for other registries, since they read of them at their start alone", () => {
    const configurations = [[], registries.slice(1), registries].map((servers) =>
      configurationOf(specOf(validSettings, { registries: servers }), machine),
    );

    expect(new Set(configurations).size).toBe(3);
  });

  const login = (resourceManagerEndpoint: string) => {
    const { content, ...file } = registryLogin({
      ...{ tenantId: "the-tenant", clientId: "the-kubelets", resourceManagerEndpoint },
    });
    return { file, content: JSON.parse(content) as Record<string, unknown> };
  };

  it.each([
    ["https://management.azure.com", { cloud: "AzurePublicCloud" }],
    ["https://management.chinacloudapi.cn", { cloud: "AzureChinaCloud" }],
    ["http://127.0.0.1:1", { resourceManagerEndpoint: "http://127.0.0.1:1" }],
  ])("logs in by the kubelets' identity, in the cloud at %s", (endpoint, cloud) => {
    const { file, content } = login(endpoint);

    expect(content).toEqual({
      ...cloud,
      ...{ tenantId: "the-tenant", useManagedIdentityExtension: true },
      userAssignedIdentityID: "the-kubelets",
    });
    const [{ args }] = parse(credentialProvider(registries).files[0]!.content).providers;
    expect(args).toEqual([file.path]);
  });
});

describe("registry credentials", () => {
  const login = { username: "robot", password: "hush" };

  it("brings a kubelet nothing without credentials", () => {
    expect(registryCredentialFiles({ registryCredentials: {} })).toEqual([]);
  });

  it.each([
    ["ghcr.io", "ghcr.io"],
    ["registry.example:5000/team", "registry.example:5000/team"],
    // A kubelet looks for docker.io/team/app by its own name, and then for the host by this one.
    ["docker.io", "index.docker.io"],
    ["docker.io/team", "docker.io/team"],
    ["index.docker.io", "index.docker.io"],
    ["index.docker.io/team", "docker.io/team"],
  ])("logs in to %s where a kubelet looks, for root alone", (host, key) => {
    const [file] = registryCredentialFiles({ registryCredentials: { [host]: login } });

    expect(file).toMatchObject({ path: "/var/lib/kubelet/config.json", mode: "0600" });
    expect(JSON.parse(file!.content)).toEqual({ auths: { [key]: login } });
  });
});

describe("a mirror", () => {
  const login = { username: "robot", password: "hush" };
  const registryCredentials = {
    "docker.io": login,
    "index.docker.io/team": login,
    "registry.example:5000/team": login,
  };

  it("is asked for nothing of registries that kubelets log in to, lest it be shown the password", () => {
    const mirror = "http://10.0.0.4:8080";

    const files = registryHostFiles({ mirror, registryCredentials }, ["ourimages.azurecr.io"]);

    expect(files.map(({ path }) => path)).toEqual(
      ["docker.io", "ourimages.azurecr.io", "registry.example:5000"].map(
        (server) => `/etc/containerd/certs.d/${server}/hosts.toml`,
      ),
    );
    expect(registryHostFiles({ mirror: "", registryCredentials }, ["ours"])).toEqual([]);
  });

  itUnless(asRoot)(
    "is shown the password by the real containerd for all others, and nothing for these",
    async () => {
      const folder = testFolder();
      const seen: string[] = [];
      const asking = (name: string) =>
        listen(
          createHttpServer(({ headers }, response) => {
            seen.push(`${name}: ${headers.authorization === undefined ? "asked" : "password"}`);
            response.writeHead(401, { "Www-Authenticate": 'Basic realm="x"' }).end();
          }),
        );
      const [mirror, server] = [await asking("mirror"), `127.0.0.1:${await asking("registry")}`];
      const write = (path: string, content: string) => {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), content);
      };
      write(
        "etc/containerd/certs.d/_default/hosts.toml",
        `[host."http://127.0.0.1:${mirror}"]\n  capabilities = ["pull", "resolve"]\n`,
      );
      const socket = join(folder, "socket");
      const paths = ["root", "state"].map((name) => `${name} = "${join(folder, name)}"\n`);
      const disabled = ["grpc.v1.cri", "cri.v1.images", "cri.v1.runtime"].map(
        (name) => `"io.containerd.${name}"`,
      );
      write(
        "config.toml",
        `version = 2\n${paths.join("")}disabled_plugins = [${disabled.join()}]\n[grpc]\naddress = "${socket}"\n`,
      );
      const containerd = spawn(installed("containerd", "containerd"), [
        ...["--config", join(folder, "config.toml")],
      ]);
      const pull = async () => {
        const words = ["--address", socket, "images", "pull", "--user", "robot:hush"];
        const hosts = ["--hosts-dir", join(folder, "etc/containerd/certs.d")];
        const ctr = spawn("ctr", [...words, ...hosts, `${server}/team/app:1`]);
        await once(ctr, "exit");
        return [...new Set(seen.splice(0))];
      };
      try {
        while (!existsSync(socket)) await wait(100);

        expect(await pull()).toContain("mirror: password");

        const registryCredentials = { [`${server}/team`]: login };
        for (const file of registryHostFiles({ mirror: "http://m", registryCredentials }, [])) {
          write(file.path, file.content);
        }
        expect(await pull()).toEqual(["registry: asked", "registry: password"]);
      } finally {
        containerd.kill();
        await once(containerd, "exit");
      }
    },
  );
});

describe("registry login", () => {
  const tenantId = "11111111-2222-4333-8444-555555555555";
  const kubelets = "20000000-0000-4000-8000-00000000c11e";
  /** As Azure calls one whose name may be used again by somebody else (its label's scope). */
  const server = "ourimages-a1b2c3d4e5.azurecr.io";

  const machine = {
    address: "172.16.1.4",
    subnet: { address: "172.16.1.0", prefix: "24" },
    mac: "00:0d:3a:01:02:03",
    compute: { name: "workers-1", vmId: "abc", zone: "1" },
    identities: [
      { resourceId: "/the/cluster", clientId: tenantId, principalId: tenantId },
      { resourceId: "/the/kubelets", clientId: kubelets, principalId: kubelets },
    ],
    inboundRules: [],
  };

  /** A registry as Azure's answer those who log in: for a token of the kubelets' identity that is for registries. */
  async function admits(request: IncomingMessage): Promise<boolean> {
    const form = new URLSearchParams(await text(request));
    const { aud, appid } = claimsOf(form.get("access_token") ?? "") ?? {};
    return (
      form.get("grant_type") === "access_token_refresh_token" &&
      form.get("service") === server &&
      form.get("tenant") === tenantId &&
      aud?.replace(/\/$/, "") === "https://containerregistry.azure.net" &&
      appid === kubelets
    );
  }

  /** Upstream's program, with the file that a machine gets, between its metadata service and a registry. */
  async function ask(image: string, clientId = kubelets) {
    const { key, cert } = await serverCertificate(server);
    const registry = createServer({ key, cert }, (request, response) => {
      if (request.url === "/oauth2/exchange") {
        void admits(request).then((isAdmitted) =>
          response
            .writeHead(isAdmitted ? 200 : 401)
            .end(JSON.stringify({ refresh_token: "for an hour" })),
        );
        return;
      }
      const where = `realm="https://${server}/oauth2/token",service="${server}"`;
      response.writeHead(401, { "Www-Authenticate": `Bearer ${where}` }).end();
    });
    const { content } = registryLogin({
      ...{ tenantId, clientId, resourceManagerEndpoint: "https://management.azure.com" },
    });
    const port = await listen(registry);
    return askCredentialProvider({ image, login: content, machine, port, ca: cert });
  }

  it("logs in to a registry by the kubelets' identity, of several that a machine has", async () => {
    const { stdout, stderr, code, asked } = await ask(`${server}/shop/app:1`);

    expect([code, stderr.match(/error.*/gi)]).toEqual([0, null]);
    const { auth, ...response } = JSON.parse(stdout) as { auth: Record<string, object> };
    expect(response).toMatchObject({ apiVersion: pluginApi, kind: "CredentialProviderResponse" });
    expect(auth[server]).toEqual({
      username: "00000000-0000-0000-0000-000000000000",
      password: "for an hour",
    });
    expect(new Set(asked)).toEqual(new Set([`${server}:443`]));
  });

  it("gives none where the machine has not the identity", async () => {
    const { stdout, stderr, code } = await ask(`${server}/shop/app:1`, tenantId.replace("1", "9"));

    expect(code).not.toBe(0);
    expect(stderr).toContain("Identity not found");
    expect(stdout).not.toContain("password");
  });
});
