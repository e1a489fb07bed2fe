import { readFileSync } from "node:fs";
import { join } from "node:path";

import { azureCloudAt } from "../../../components/azure/clouds";
import { injectionBinding, injectionPolicy } from "../../../components/add-ons/workload-identity";
import { accountKey } from "../../../components/settings/logins";
import {
  discoveryDocument,
  discoveryPath,
  keysDocument,
  keysPath,
  keysUrl,
  tokenIssuerOf,
} from "../../../components/token-issuer";
import { Api, type Body } from "../../../tools/local-azure/machines/simulated/api";
import { type RealApiServer, startApiServer } from "../../support/api-server";
import { built, output } from "../../support/tools";
import { until } from "../../support/until";

const issuer = tokenIssuerOf(
  { clusterName: "zoned-dev", resourceManagerEndpoint: "https://management.azure.com" },
  "5ca1ab1e-0000-4000-8000-000000000001",
);
const cloud = azureCloudAt("https://management.azure.com");
const tenantId = "11111111-2222-4333-8444-555555555555";
const clientId = "99999999-2222-4333-8444-555555555555";
const app = { namespace: "shop", serviceAccount: "app" };
const policies = "/apis/admissionregistration.k8s.io/v1";

let server: RealApiServer;
let api: Api;

beforeAll(async () => {
  server = await startApiServer({
    "service-account-issuer": issuer,
    "service-account-jwks-uri": keysUrl(issuer),
  });
  api = server.api;
});

it("publishes what the API server itself would, for the same key", async () => {
  const documents = {
    [discoveryPath]: discoveryDocument(issuer),
    [keysPath]: keysDocument(readFileSync(join(server.pki, "sa.pub"), "utf8")),
  };

  for (const [path, text] of Object.entries(documents)) {
    const kubeconfig = ["--kubeconfig", join(server.folder, "super-admin.conf")];
    const served = output(built("kubectl"), [...kubeconfig, "get", "--raw", `/${path}`]);
    expect(JSON.parse(text)).toEqual(JSON.parse(served));
  }
});

describe("a pod", () => {
  const named = (name: string, spec: object) => ({ metadata: { name }, spec });
  /** As the API server would admit it. */
  const admitted = async (
    serviceAccountName: string,
    spec: object = {},
    labels: object = {},
  ): Promise<Body> => {
    const containers = [{ name: "app", image: "app" }];
    const pod = await api.post(`/api/v1/namespaces/${app.namespace}/pods?dryRun=All`, {
      metadata: { name: "one", labels },
      spec: { serviceAccountName, containers, ...spec },
    });
    return pod["spec"] as Body;
  };
  const variables = (container: Body): Record<string, string> =>
    Object.fromEntries(
      ((container["env"] ?? []) as { name: string; value: string }[]).map((one) => [
        one.name,
        one.value,
      ]),
    );
  const azures = {
    AZURE_CLIENT_ID: clientId,
    AZURE_TENANT_ID: tenantId,
    AZURE_FEDERATED_TOKEN_FILE: "/var/run/secrets/azure/tokens/azure-identity-token",
    AZURE_AUTHORITY_HOST: "https://login.microsoftonline.com/",
  };

  beforeAll(async () => {
    await api.post("/api/v1/namespaces", { metadata: { name: app.namespace } });
    for (const name of [app.serviceAccount, "other"]) {
      const metadata = { name };
      await api.post(`/api/v1/namespaces/${app.namespace}/serviceaccounts`, { metadata });
    }
    const { name, namespace } = injectionBinding.paramRef;
    await api.post(`/api/v1/namespaces/${namespace}/configmaps`, {
      metadata: { name },
      data: { [accountKey(app)]: clientId },
    });
    const policy = injectionPolicy(tenantId, cloud);
    await api.post(`${policies}/mutatingadmissionpolicies`, named(name, policy));
    await api.post(`${policies}/mutatingadmissionpolicybindings`, named(name, injectionBinding));
    await until("the policy", async () => {
      const { containers } = await admitted(app.serviceAccount);
      return "AZURE_CLIENT_ID" in variables(containers[0]);
    });
  });

  it("of a declared service account gets a token for Entra, and the names by which Azure's libraries log in", async () => {
    const spec = await admitted(app.serviceAccount);

    expect(variables(spec["containers"][0])).toEqual(azures);
    expect(spec["containers"][0].volumeMounts).toContainEqual({
      ...{ name: "azure-identity-token", readOnly: true },
      mountPath: "/var/run/secrets/azure/tokens",
    });
    const volume = spec["volumes"].find(({ name }: Body) => name === "azure-identity-token");
    expect(volume.projected.sources).toEqual([
      {
        serviceAccountToken: {
          audience: "api://AzureADTokenExchange",
          expirationSeconds: 3600,
          path: "azure-identity-token",
        },
      },
    ]);
  });

  it("gets them in every container, beside what it has", async () => {
    const has = [
      { name: "AZURE_CLIENT_ID", value: "its-own" },
      { name: "COLOUR", value: "blue" },
    ];
    const container = (name: string, env: object[]) => ({ name, image: "app", env });
    const spec = await admitted(app.serviceAccount, {
      automountServiceAccountToken: false,
      initContainers: [container("first", [])],
      containers: [container("app", has), container("sidecar", [])],
    });

    expect(variables(spec["initContainers"][0])).toEqual(azures);
    expect(variables(spec["containers"][1])).toEqual(azures);
    expect(variables(spec["containers"][0])).toEqual({
      ...azures,
      ...{ AZURE_CLIENT_ID: "its-own", COLOUR: "blue" },
    });
    expect(spec["volumes"]).toHaveLength(1);
  });

  it("keeps a volume of that name, and is given what its containers lack", async () => {
    const volume = { name: "azure-identity-token", emptyDir: {} };
    const spec = await admitted(app.serviceAccount, {
      automountServiceAccountToken: false,
      volumes: [volume],
    });

    expect(spec["volumes"]).toEqual([volume]);
    expect(variables(spec["containers"][0])).toEqual(azures);
  });

  it("gets them in a container that another policy adds to it after", async () => {
    const name = "zz-injector";
    const sidecar = `Object.spec.containers{name: 'sidecar', image: 'sidecar'}`;
    await api.post(
      `${policies}/mutatingadmissionpolicies`,
      named(name, {
        failurePolicy: "Fail",
        reinvocationPolicy: "Never",
        matchConstraints: injectionPolicy(tenantId, cloud).matchConstraints,
        matchConditions: [
          {
            name: "is-wanted",
            expression: "has(object.metadata.labels) && 'sidecar' in object.metadata.labels",
          },
        ],
        mutations: [
          {
            patchType: "ApplyConfiguration",
            applyConfiguration: {
              expression: `Object{spec: Object.spec{containers: [${sidecar}]}}`,
            },
          },
        ],
      }),
    );
    const binding = named(name, { policyName: name });
    await api.post(`${policies}/mutatingadmissionpolicybindings`, binding);

    const containers = await until("the sidecar", async () => {
      const spec = await admitted(app.serviceAccount, {}, { sidecar: "yes" });
      return spec["containers"].length > 1 && (spec["containers"] as Body[]);
    });

    expect(containers.map(({ name: one }) => one).sort()).toEqual(["app", "sidecar"]);
    for (const container of containers) {
      expect(variables(container)).toEqual(azures);
      expect(container["volumeMounts"]).toContainEqual(
        expect.objectContaining({ name: "azure-identity-token" }),
      );
    }
  });

  it("of any other service account is left as it is", async () => {
    const spec = await admitted("other");

    expect(variables(spec["containers"][0])).toEqual({});
    expect(spec["volumes"].map(({ name }: Body) => name)).not.toContain("azure-identity-token");
  });

  it("that is a kubelet's static one, and so has no service account, is left as it is", async () => {
    const pod = await api.post(`/api/v1/namespaces/kube-system/pods?dryRun=All`, {
      metadata: { name: "etcd", annotations: { "kubernetes.io/config.mirror": "one" } },
      spec: { nodeName: "cp-1", containers: [{ name: "etcd", image: "etcd" }] },
    });

    expect(variables(pod["spec"].containers[0])).toEqual({});
  });

  it("is admitted as it is while no service account is declared", async () => {
    const { name, namespace } = injectionBinding.paramRef;
    await api.delete(`/api/v1/namespaces/${namespace}/configmaps/${name}`);

    const spec = await until("a pod without the policy", async () => {
      const found = await admitted(app.serviceAccount);
      return !("AZURE_CLIENT_ID" in variables(found["containers"][0])) && found;
    });
    expect(variables(spec["containers"][0])).toEqual({});
  });
});
