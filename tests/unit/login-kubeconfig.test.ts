import * as pulumi from "@pulumi/pulumi";

import { loginKubeconfig } from "../../components/kubeconfig";
import type { Entra } from "../../components/settings/settings";
import { Recorder, valueOf } from "../support/record";
import { validSettings } from "../support/sample";
import { application, people, tenant } from "../support/settings-cases/entra";

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
