import { generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { join } from "node:path";

import { parseAllDocuments } from "yaml";

import { adminsBinding } from "../../../components/add-ons/cluster-rights";
import { KubernetesApi } from "../../../components/cluster/kubernetes-api";
import { kubeadmFiles } from "../../../components/kubeadm/kubeadm";
import type { Entra, Settings } from "../../../components/settings/settings";
import { issuerIn, type IssuerState } from "../../../tools/doctor/cluster-state";
import { ApiError, type Body } from "../../../tools/local-azure/machines/simulated/api";
import { serverCertificate } from "../../../tools/local-azure/tests/support/plugins/fake-api";
import { RealApiServer, startEtcd } from "../../support/api-server";
import { listen, serveProxyTo } from "../../support/listen";
import { machine, specOf, validSettings } from "../../support/sample";
import { application, tenant } from "../../support/settings-cases/entra";
import { testFolder } from "../../support/test-folder";
import { until } from "../../support/until";

const newKey = () => generateKeyPairSync("rsa", { modulusLength: 2048 });

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token of an issuer, signed by RS256. */
function signed(key: KeyObject, claims: object): string {
  const text = `${part({ alg: "RS256", typ: "JWT", kid: "of-today" })}.${part(claims)}`;
  return `${text}.${sign("RSA-SHA256", Buffer.from(text), key).toString("base64url")}`;
}

/**
 * An issuer of OpenID Connect that says who it is and which key signs, by https under a name, and an HTTP
 * proxy that leads to it as the internet would.
 */
async function startIssuer(hostname: string) {
  const { key, cert } = await serverCertificate(hostname);
  const [keys, strangers] = [newKey(), newKey()];
  const state = { isDown: false };
  const server = createServer({ key, cert }, (request, response) => {
    const { pathname } = new URL(request.url!, "https://any");
    const issuer = `https://${request.headers.host}${pathname.replace(/\/\.well-known.*/, "")}`;
    const answers = pathname.endsWith("/keys")
      ? { keys: [{ ...keys.publicKey.export({ format: "jwk" }), kid: "of-today", use: "sig" }] }
      : { issuer, jwks_uri: `${issuer}/keys`, id_token_signing_alg_values_supported: ["RS256"] };
    response.writeHead(state.isDown ? 503 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(answers));
  });
  const port = await listen(server);
  const { address: proxy, asked } = await serveProxyTo(port);
  const now = () => Math.floor(Date.now() / 1000);
  return {
    state,
    /** Of its CA. */
    cert,
    port,
    proxy,
    /** What the proxy was asked for. */
    asked,
    token: (claims: object): string =>
      signed(keys.privateKey, { iat: now(), nbf: now(), exp: now() + 3600, ...claims }),
    strangersToken: (claims: object): string =>
      signed(strangers.privateKey, { iat: now(), exp: now() + 3600, ...claims }),
  };
}

const nodes = "/api/v1/nodes";
const admins = randomUUID();
const none: Entra = {
  ...{ tenant: "", issuer: "", application: "kubernetes", admins: [] },
  ...{ usernameClaim: "", groupsClaim: "", ca: "" },
};

let server: RealApiServer;

beforeAll(async () => {
  const folder = testFolder();
  server = await RealApiServer.prepare(folder, await startEtcd(folder));
});

/** Starts it with what the program gives a control plane for people. */
async function start(settings: Settings, variables: Readonly<Record<string, string>> = {}) {
  const files = kubeadmFiles(specOf(settings), machine);
  const isOf = (name: string) => files.find(({ path }) => path.endsWith(`/${name}`))!.content;
  const authentication = join(server.folder, "authentication.yaml");
  writeFileSync(authentication, isOf("authentication.yaml"));
  const { apiServer } = parseAllDocuments(isOf("kubeadm-init.yaml"))
    .map((document) => document.toJS() as Body)
    .find(({ kind }) => kind === "ClusterConfiguration")!;
  const given = ((apiServer.extraEnvs ?? []) as { name: string; value: string }[]).map(
    ({ name, value }) => [name, value],
  );
  await server.start(
    { "authentication-config": authentication },
    { ...Object.fromEntries(given), ...variables },
  );
}

/** What doctor sees of the issuer. */
async function issuerSeen(): Promise<IssuerState> {
  const api = new KubernetesApi(server.kubeconfig);
  return issuerIn(await api.get("/metrics").finally(() => api.close()));
}

/** The status and the words of an answer to somebody who lists the nodes. */
const lists = (token?: string, path = nodes): Promise<string> =>
  server
    .of({ token })
    .get(path)
    .then(
      () => "200",
      (error: Error) => {
        if (error instanceof ApiError) return `${error.status} ${error.message}`;
        throw error;
      },
    );

/** As whom the API server takes somebody, as `kubectl auth whoami` says it. */
async function whoami(token: string): Promise<Body> {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  return (await server.of({ token }).post(path, review)).status.userInfo;
}

const bind = (entra: Entra): Promise<Body> =>
  server.api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    ...adminsBinding(entra),
  });

describe("a real API server, and people of Entra ID behind a proxy", () => {
  const entra = { ...none, tenant, application, admins: [admins] };
  let issuer: Awaited<ReturnType<typeof startIssuer>>;

  /** An access token of version 2, as Entra ID has it for a person. */
  const claimsOf = (more: object = {}) => ({
    aud: application,
    iss: `https://login.microsoftonline.com/${tenant}/v2.0`,
    oid: "5c1d8c6f-0b3e-4a6b-8f0e-2d9f6a1b7c3d",
    preferred_username: "ada@example.org",
    sub: "of this application alone",
    tid: tenant,
    ver: "2.0",
    ...more,
  });
  const groups = (count: number) => Array.from({ length: count }, () => randomUUID());
  const overage = {
    _claim_names: { groups: "src1" },
    _claim_sources: { src1: { endpoint: "https://graph.windows.net/t/users/u/getMemberObjects" } },
  };

  beforeAll(async () => {
    issuer = await startIssuer("login.microsoftonline.com");
    issuer.state.isDown = true;
    // Where a machine has the proxy's CA: among those that it trusts.
    const trusted = join(server.folder, "issuer.crt");
    writeFileSync(trusted, issuer.cert);
    const httpProxy = { http: "", https: issuer.proxy, noProxy: [], ca: "" };
    await start({ ...validSettings, entra, httpProxy }, { SSL_CERT_FILE: trusted });
    await bind(entra);
  });

  it("has the certificate as the way in while Entra ID is down, and people's when it is back", async () => {
    const token = issuer.token(claimsOf({ groups: [admins] }));
    const before = await lists(token);
    const byCertificate = await server.api.get(nodes);
    const seenBefore = await issuerSeen();
    issuer.state.isDown = false;
    await until("people's way in", async () => (await lists(token)) === "200");

    expect(before).toMatch(/^401 /);
    expect(seenBefore).toEqual({ refused: 1 });
    expect(await issuerSeen()).toMatchObject({ keysAt: expect.any(Number) });
    expect(byCertificate).toMatchObject({ kind: "NodeList" });
    expect(new Set(issuer.asked)).toEqual(new Set(["login.microsoftonline.com:443"]));
  });

  it("lets somebody of an admin group, the last of 200, list nodes", async () => {
    const token = issuer.token(claimsOf({ groups: [...groups(199), admins] }));

    expect(await lists(token)).toBe("200");
  });

  it("forbids it to somebody of no admin group, by a name that stays", async () => {
    const token = issuer.token(claimsOf({ groups: groups(1) }));

    expect(await lists(token)).toMatch(/^403 .*User "entra:5c1d8c6f-/);
    expect(await whoami(token)).toMatchObject({
      extra: { "login.microsoftonline.com/preferred-username": ["ada@example.org"] },
    });
  });

  it.each([
    ["201 groups", overage],
    ["too many for a login by browser alone", { hasgroups: true }],
  ])(
    "admits somebody with %s as who they are, without their groups, and says so",
    async (_, more) => {
      const token = issuer.token(claimsOf(more));

      expect(await lists(token)).toMatch(/^403 /);
      expect((await whoami(token)).groups).toEqual([
        "entra:more-than-200-groups",
        "system:authenticated",
      ]);
      expect(issuer.asked.join()).not.toContain("graph.windows.net");
    },
  );

  it.each<[string, object]>([
    ["for another application", { aud: randomUUID() }],
    [
      "of another tenant, whose keys are the same",
      { iss: `https://login.microsoftonline.com/${randomUUID()}/v2.0` },
    ],
    ["of version 1", { iss: `https://sts.windows.net/${tenant}/` }],
    ["that has ended", { exp: Math.floor(Date.now() / 1000) - 60 }],
    ["of nobody", { oid: undefined }],
  ])("refuses a token %s", async (_, more) => {
    const token = issuer.token(claimsOf({ groups: [admins], ...more }));

    expect(await lists(token)).toMatch(/^401 /);
  });

  it("refuses a token that a stranger has signed", async () => {
    const token = issuer.strangersToken(claimsOf({ groups: [admins] }));

    expect(await lists(token)).toMatch(/^401 /);
  });

  it("makes nobody one of Kubernetes' own", async () => {
    const token = issuer.token(claimsOf({ oid: "system:admin", groups: ["system:masters"] }));

    expect(await lists(token)).toMatch(/^403 /);
    expect(await whoami(token)).toMatchObject({
      username: "entra:system:admin",
      groups: ["entra:system:masters", "system:authenticated"],
    });
  });

  it("answers nobody without a credential but probes", async () => {
    expect(await lists(undefined, "/readyz")).toBe("200");
    expect(await lists()).toMatch(/^401 /);
    expect(await lists(undefined, "/version")).toMatch(/^401 /);
  });
});

describe("a real API server, and people of another issuer, with a CA of its own", () => {
  it("admits them by the claims that are named, and refuses those of other audiences", async () => {
    const issuer = await startIssuer("localhost");
    const address = `https://localhost:${issuer.port}/realms/demo`;
    const other = { ...none, issuer: address, admins: ["admins"], ca: issuer.cert };
    const named = { ...other, usernameClaim: "email", groupsClaim: "roles" };
    const claims = { iss: address, aud: "kubernetes", sub: "42", groups: ["admins"] };
    const token = issuer.token(claims);
    const emailed = issuer.token({
      ...claims,
      email: "ada@example.org",
      roles: ["system:masters"],
    });

    await start({ ...validSettings, entra: other });
    await server.api.delete(
      "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/zoned:login-admins",
    );
    await bind(other);
    await until("people's way in", async () => (await lists(token)) === "200");
    const who = await whoami(token);
    const refused = await lists(issuer.token({ ...claims, aud: "another" }));
    await start({ ...validSettings, entra: named });
    await until("the way in by e-mail", async () => !(await lists(emailed)).startsWith("401"));

    expect(who).toMatchObject({
      username: "oidc:42",
      groups: ["oidc:admins", "system:authenticated"],
    });
    expect(refused).toMatch(/^401 /);
    expect(await whoami(emailed)).toMatchObject({
      username: "oidc:ada@example.org",
      groups: ["oidc:system:masters", "system:authenticated"],
    });
    expect(issuer.asked).toEqual([]);
  });
});
