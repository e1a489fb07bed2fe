import * as pulumi from "@pulumi/pulumi";

import {
  kubeconfigOf,
  loginKubeconfig,
  renderKubeconfig,
  throughProxy,
} from "../../components/kubeconfig";
import type { Entra } from "../../components/settings/settings";
import { Recorder, valueOf } from "../support/record";
import { validSettings } from "../support/sample";
import { application, people, tenant } from "../support/settings-cases/entra";

describe("kubeconfig", () => {
  const plan = {
    settings: validSettings,
    apiServer: { name: "api.example.com", port: 6443 },
    initialization: { id: "1", exists: false, problems: [], warnings: [] },
  };
  const living = { ...plan, initialization: { ...plan.initialization, exists: true } };

  const pair = (name: string) => ({
    cert: pulumi.output(`cert of ${name}`),
    key: pulumi.output(`key of ${name}`),
  });
  const certificates = {
    cluster: { ...pair("another authority"), trusted: pulumi.output("cert of the authority") },
    admin: pair("the administrator"),
  };

  /** Something that Azure fills in when the initial control plane's step has ended. */
  class Step extends pulumi.CustomResource {
    declare readonly state: pulumi.Output<string>;
    constructor() {
      super("test:index:Step", "initialControlPlane", { state: undefined });
    }
  }

  const start = (preview: boolean) =>
    Recorder.start({
      preview,
      filledIn: { "test:index:Step": preview ? {} : { state: "Succeeded" } },
    });

  /** Whether an output has a value by now, as the engine sees it. */
  const isKnown = (output: pulumi.Output<unknown>): Promise<boolean> =>
    (output as unknown as { isKnown: Promise<boolean> }).isKnown;

  it("speaks to the API by its name, as the administrator, trusting the cluster's own authority", () => {
    const { clusters, users, contexts, ...rest } = JSON.parse(
      renderKubeconfig({
        clusterName: "zoned-test",
        server: "https://api.example.com:6443",
        caCert: "the authority",
        clientCert: "the certificate",
        clientKey: "the key",
      }),
    );
    const text = (base64: string) => Buffer.from(base64, "base64").toString();

    const [{ cluster, name }] = clusters;
    const [{ user, name: userName }] = users;
    expect(cluster.server).toBe("https://api.example.com:6443");
    expect(text(cluster["certificate-authority-data"])).toBe("the authority");
    expect(text(user["client-certificate-data"])).toBe("the certificate");
    expect(text(user["client-key-data"])).toBe("the key");
    expect(contexts).toEqual([{ name: "zoned-test", context: { cluster: name, user: userName } }]);
    expect(rest).toEqual({ apiVersion: "v1", kind: "Config", "current-context": "zoned-test" });
  });

  it("is unknown until the first step has ended", async () => {
    await start(true);
    const kubeconfig = kubeconfigOf(new Step().state, plan, certificates);

    expect(await isKnown(kubeconfig)).toBe(false);
  });

  it("is known in every preview of a living cluster, since machines depend on what it is made for", async () => {
    await start(true);

    expect(await isKnown(kubeconfigOf(new Step().state, living, certificates))).toBe(true);
  });

  it("is known once the first step has ended, and is made of the cluster's own certificates", async () => {
    await start(false);
    const proxy = "http://proxy.example:3128";
    const proxied = { ...plan, settings: { ...validSettings, apiProxy: proxy } };
    const kubeconfig = kubeconfigOf(new Step().state, proxied, certificates);

    expect(await isKnown(kubeconfig)).toBe(true);
    expect(await valueOf(kubeconfig)).toBe(
      renderKubeconfig({
        clusterName: "zoned-test",
        server: "https://api.example.com:6443",
        proxy,
        caCert: "cert of the authority",
        clientCert: "cert of the administrator",
        clientKey: "key of the administrator",
      }),
    );
  });

  it("is a secret, even if none of its parts were", async () => {
    await start(false);

    expect(await pulumi.isSecret(kubeconfigOf(new Step().state, plan, certificates))).toBe(true);
  });

  it("goes by a proxy if one is given, and takes the one of now in place of an earlier one", () => {
    const access = {
      clusterName: "zoned-test",
      server: "https://api.example.com:6443",
      caCert: "the authority",
      clientCert: "the certificate",
      clientKey: "the key",
    };
    const direct = renderKubeconfig(access);
    const proxied = renderKubeconfig({ ...access, proxy: "http://proxy.example:3128" });
    const [{ cluster }] = JSON.parse(proxied).clusters;

    expect(cluster["proxy-url"]).toBe("http://proxy.example:3128");
    expect(JSON.parse(throughProxy(direct, "http://proxy.example:3128"))).toEqual(
      JSON.parse(proxied),
    );
    expect(JSON.parse(throughProxy(proxied, ""))).toEqual(JSON.parse(direct));
  });
});

describe("login kubeconfig", () => {
  async function rendered(entra: Entra, change: Partial<typeof validSettings> = {}) {
    await Recorder.start();
    const settings = { ...validSettings, apiProxy: "http://proxy.example:3128", ...change };
    const trusted = pulumi.output("the authority");
    const cluster = { cert: trusted, key: pulumi.secret("the key"), trusted };
    const apiServer = { name: "api.example.com", port: 6443 };
    const text = await valueOf(loginKubeconfig(entra, { settings, apiServer }, { cluster }));
    const config = JSON.parse(text!);
    return { text: text!, config, exec: config.users[0].user.exec };
  }

  it("leads to the API as the other one does, beside which it goes", async () => {
    const { config, text } = await rendered(people);
    const [{ cluster }] = config.clusters;

    expect(cluster).toEqual({
      server: "https://api.example.com:6443",
      "proxy-url": "http://proxy.example:3128",
      "certificate-authority-data": Buffer.from("the authority").toString("base64"),
    });
    expect(config["current-context"]).toBe("zoned-test-login");
    expect(config.contexts).toEqual([
      { name: "zoned-test-login", context: { cluster: "zoned-test", user: "zoned-test-login" } },
    ]);
    expect(text).not.toContain(Buffer.from("the key").toString("base64"));
  });

  it("has kubelogin get a token of the tenant for the application", async () => {
    const { exec } = await rendered(people);

    expect(exec).toMatchObject({
      apiVersion: "client.authentication.k8s.io/v1",
      command: "kubelogin",
      interactiveMode: "IfAvailable",
      installHint: expect.stringContaining("az aks install-cli"),
    });
    expect(exec.args.join(" ")).toBe(
      "get-token --login devicecode --environment AzurePublicCloud " +
        `--tenant-id ${tenant} --server-id ${application} --client-id ${application}`,
    );
  });

  it("asks the Entra ID of Azure's other clouds", async () => {
    const { exec } = await rendered(people, {
      resourceManagerEndpoint: "https://management.usgovcloudapi.net",
    });

    expect(exec.args).toContain("AzureUSGovernmentCloud");
  });

  it("has oidc-login get a token of another issuer, by the CA of that", async () => {
    const other = { ...people, tenant: "", issuer: "https://login.example", application: "kube" };
    const plain = await rendered(other);
    const own = await rendered({ ...other, ca: "its CA" });

    expect(plain.exec).toMatchObject({ command: "kubectl" });
    expect(plain.exec.args).toEqual([
      ...["oidc-login", "get-token", "--oidc-issuer-url=https://login.example"],
      "--oidc-client-id=kube",
    ]);
    expect(own.exec.args).toContain(
      `--certificate-authority-data=${Buffer.from("its CA").toString("base64")}`,
    );
  });
});
