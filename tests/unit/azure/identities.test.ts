import {
  getAddedIdentities,
  getExistingIdentity,
  getWorkloadClients,
} from "../../../components/azure/identities";
import { ArmClient, type AzureConnection } from "../../../components/azure/resource-manager";
import { shownAs, type ShownResource } from "../../../components/azure/shown";
import { digest } from "../../../components/digest";
import { tokenIssuerOf } from "../../../components/token-issuer";
import { account, subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { serveRest } from "../../../tools/local-azure/arm/rest/rest";
import { newArm, tokenOf } from "../../../tools/local-azure/tests/support/arm/fixture";
import { serve } from "../../support/listen";
import { subscriptionId, validSettings } from "../../support/sample";

describe("identities that others give machines", () => {
  const location = "westeurope";
  const theirs = `${subscriptionPath}/resourceGroups/management`;
  const identityIn = (group: string, name: string) =>
    `${subscriptionPath}/resourceGroups/${group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/${name}`;
  const added = identityIn("management", "monitoring");
  const own = identityIn(validSettings.clusterName, validSettings.clusterName);
  const roles = {
    operator: "f1a07417-d97a-45cb-824c-7a7467783830",
    reader: "acdd72a7-3385-48ef-bd42-f606fba81ae7",
  };

  interface Scene {
    /** Of machines, each with ids of its identities. */
    readonly machines: Readonly<Record<string, readonly string[]>>;
    /** Of the login, at the identity; none where it may not even see that. */
    readonly right?: keyof typeof roles;
    readonly isGone?: boolean;
    readonly settings?: Partial<typeof validSettings>;
    readonly previous?: Parameters<typeof getAddedIdentities>[2];
    /** Of every machine. */
    readonly tags?: Readonly<Record<string, string>>;
  }

  async function found({ machines, right, isGone, settings, previous, tags }: Scene) {
    const { arm } = newArm();
    await arm.put(theirs, { location });
    await arm.put(added, { location });
    const login = identityIn("management", "login");
    const { body } = await arm.put(login, { location });
    if (right !== undefined) {
      // At the group, of which it is known also when the identity is gone.
      await arm.put(
        `${theirs}/providers/Microsoft.Authorization/roleAssignments/11111111-2222-3333-4444-555555555555`,
        {
          principalId: (body as { principalId: string }).principalId,
          principalType: "ServicePrincipal",
          roleDefinitionId: `${subscriptionPath}/providers/Microsoft.Authorization/roleDefinitions/${roles[right]}`,
        },
      );
    }
    const token = tokenOf(arm, login);
    if (isGone) await arm.delete(added);
    const rest = await serveRest(arm, 0);
    try {
      const shown = Object.entries(machines).map(([name, ids]): [string, ShownResource] => [
        shownAs("azure-native:compute:VirtualMachine", name),
        {
          name,
          tags,
          identity: {
            type: "UserAssigned",
            userAssignedIdentities: Object.fromEntries(ids.map((id) => [id, {}])),
          },
        },
      ]);
      return await getAddedIdentities(
        { ...validSettings, ...settings },
        {
          machines: new Map(
            Object.keys(machines).map((name) => [name, { size: "Standard_D2s_v5" }]),
          ),
          shown: new Map(shown),
        },
        previous,
        { ...account, arm: new ArmClient(`http://127.0.0.1:${rest.port}`, token) },
      );
    } finally {
      await rest.close();
    }
  }

  const machines = { "zoned-cp-1": [own, added], "zoned-workers-1": [added.toUpperCase()] };

  it.each([
    { what: "see", right: undefined },
    { what: "assign", right: "reader" as const },
  ])(
    "names an identity that a policy has added and the login may not $what, once",
    async (scene) => {
      expect(await found({ machines, ...scene })).toEqual([
        {
          machines: ["zoned-cp-1", "zoned-workers-1"],
          problem: expect.stringMatching(
            new RegExp(
              `^zoned-cp-1, zoned-workers-1 have the identity ${added}, .* --role 'Managed Identity Operator' --scope ${added}$`,
            ),
          ),
        },
      ]);
    },
  );

  it("says how one that is gone is taken off its machines", async () => {
    const [one] = await found({ machines, right: "operator", isGone: true });

    expect(one?.problem).toMatch(
      /is gone: for name in zoned-cp-1 zoned-workers-1; do az vm identity remove .* --identities .*monitoring; done$/,
    );
  });

  it("says nothing of one that the login may assign", async () => {
    expect(await found({ machines, right: "operator" })).toEqual([]);
  });

  it.each([
    { what: "settings name", settings: { identityId: added } },
    { what: "settings name for kubelets", settings: { kubeletIdentityId: added } },
    { what: "last update has given", previous: { kubeletIdentityId: added } },
    {
      what: "update before has given, which failed",
      tags: { "zoned-identities": digest(added.toLowerCase()) },
    },
  ])("leaves out the one that the $what", async (scene) => {
    expect(await found({ machines, ...scene })).toEqual([]);
  });
});

describe("an identity that exists already", () => {
  const identityId = `/subscriptions/${subscriptionId}/resourceGroups/identities/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubernetes`;
  const properties = { clientId: "the-client", principalId: "the-principal" };

  interface Azure {
    /** Undefined where there is none. */
    readonly identity?: object | "unreadable";
    /** What the login may do with it; undefined where Azure does not say it. */
    readonly permissions?: readonly object[];
    /** Its federated credentials, as `NAME`, `NAME ISSUER` of those that are not this cluster's, or with a subject behind. */
    readonly credentials?: readonly string[];
  }

  function credentialOf(text: string) {
    const own = tokenIssuerOf(validSettings, subscriptionId);
    const [name, issuer = "own", subject] = text.split(" ");
    return { name, properties: { issuer: issuer === "own" ? own : issuer, subject } };
  }

  async function answered<T extends object>(
    { identity, permissions, credentials }: Azure,
    get: (connection: AzureConnection) => Promise<T>,
  ) {
    const asked: string[] = [];
    const azure = await serve(({ url = "" }, response) => {
      const { pathname } = new URL(url, "http://localhost");
      asked.push(pathname);
      const isPermissions = pathname.endsWith("/permissions");
      const body = isPermissions
        ? permissions && { value: permissions }
        : pathname.endsWith("/federatedIdentityCredentials")
          ? credentials && { value: credentials.map(credentialOf) }
          : identity;
      const refuse = (status: number, code: string) =>
        response.writeHead(status).end(JSON.stringify({ error: { code, message: "…" } }));
      if (body === "unreadable") refuse(403, "AuthorizationFailed");
      else if (body === undefined) refuse(404, "ResourceNotFound");
      else response.writeHead(200).end(JSON.stringify(body));
    });
    const arm = new ArmClient(azure, "token");
    // Who deploys may have written it so.
    const connection = { arm, subscriptionId: subscriptionId.toUpperCase(), tenantId: "tenant" };
    return { ...(await get(connection)), asked };
  }

  const ask = (azure: Azure, id = identityId) =>
    answered(azure, (connection) => getExistingIdentity("identityId", id, connection));

  it("takes client id and principal id from Azure", async () => {
    const { identity, problems } = await ask({ identity: { location: "elsewhere", properties } });

    expect(identity).toMatchObject(properties);
    expect(problems).toEqual([]);
  });

  it("names an identity that is not there, and both ways on", async () => {
    const { problems } = await ask({});

    expect(problems).toEqual([
      expect.stringMatching(/identityId is .*kubernetes, .*az identity list.*config rm identityId/),
    ]);
  });

  it("names the role by which a login may give the identity to machines", async () => {
    const { problems } = await ask({
      identity: { properties },
      permissions: [{ actions: ["*/read"], notActions: [] }],
    });

    expect(problems).toEqual([
      expect.stringMatching(
        /may not give .* --role 'Managed Identity Operator' --scope .*kubernetes/,
      ),
    ]);
  });

  it("names the role by which a login may read the identity and give it to machines", async () => {
    const { identity, problems } = await ask({
      identity: "unreadable",
      permissions: [{ actions: ["Microsoft.Compute/*"], notActions: [] }],
    });

    expect(identity).toBeUndefined();
    expect(problems).toEqual([
      expect.stringMatching(
        /may not read the identity .* --role 'Managed Identity Operator' --scope .*kubernetes$/,
      ),
    ]);
  });

  it("asks for nothing where the program makes an identity", async () => {
    const { asked, problems } = await ask({}, "");

    expect([asked, problems]).toEqual([[], []]);
  });

  describe("an identity that service accounts log in as", () => {
    const accounts = ["app", "jobs"].map((serviceAccount) => ({
      ...{ namespace: "shop", serviceAccount, identityId, roles: [] },
    }));
    const none = { machineIdentity: true, identityId: "" };
    const withDrivers = { cloudProvider: true, diskDriver: true };
    const askFor = (azure: Azure, workloadIdentities = accounts, cluster = none) =>
      answered(azure, (connection) =>
        getWorkloadClients(
          { ...validSettings, ...withDrivers, workloadIdentities, ...cluster },
          tokenIssuerOf(validSettings, connection.subscriptionId),
          connection,
        ),
      );

    it("is known by its client id, and asked for once", async () => {
      const { clientIds, problems, asked } = await askFor({ identity: { properties } });

      expect([...clientIds]).toEqual([[identityId.toLowerCase(), "the-client"]]);
      expect([problems, asked.length]).toEqual([[], 3]);
    });

    it("is named where Azure has none, and where the login may not let anybody log in as it", async () => {
      expect((await askFor({})).problems).toEqual([expect.stringContaining("az identity list")]);
      const permissions = [{ actions: ["*/read"], notActions: [] }];
      expect((await askFor({ identity: { properties }, permissions })).problems).toEqual([
        expect.stringMatching(
          /'Managed Identity Federated Identity Credential Contributor' --scope/,
        ),
      ]);
    });

    const others = (count: number) => Array.from({ length: count }, (_, at) => `theirs-${at}`);
    const own = ["zoned-test_shop_app", "Zoned-Test_shop_jobs"];

    it.each<[string, readonly string[], typeof none, RegExp[]]>([
      ["as many as Azure takes", others(18), none, []],
      [
        "one too many",
        others(19),
        none,
        [/kubernetes has 19 federated .* besides the 2 that .* takes 20/],
      ],
      ["its own, which are there", [...others(18), ...own], none, []],
      [
        "the cluster's own pods besides",
        others(17),
        { machineIdentity: false, identityId },
        [/has 17 federated credentials besides the 4 /],
      ],
    ])("is counted with %s", async (_, credentials, cluster, said) => {
      const azure = { identity: { properties }, credentials };

      expect((await askFor(azure, accounts, cluster)).problems).toEqual(
        said.map((text) => expect.stringMatching(text)),
      );
    });

    it("is asked for no right where all of its credentials are there", async () => {
      const permissions = [{ actions: ["*/read"], notActions: [] }];
      const azure = { identity: { properties }, permissions };

      const later = await askFor({ ...azure, credentials: own });
      expect([later.problems, [...later.isWritten.values()]]).toEqual([[], [true]]);
      const more = await askFor({ ...azure, credentials: own.slice(1) });
      expect([more.problems.length, [...more.isWritten.values()]]).toEqual([1, [false]]);
    });

    it("has no credential of another cluster of the same name", async () => {
      const credentials = [own[0]!, `${own[1]} https://theirs.blob.core.windows.net/issuer`];
      const azure = { identity: { properties }, credentials };

      const { problems, isWritten } = await askFor(azure);

      expect([problems, [...isWritten.values()]]).toEqual([
        [
          expect.stringMatching(
            /credential \S+_jobs of the issuer https:\/\/theirs\S+, .* set clusterName NAME.* delete --ids \S+\/Zoned-Test_shop_jobs$/,
          ),
        ],
        [false],
      ]);
    });

    it("has no credential for the same account by another name, of which Azure takes one", async () => {
      const subject = "system:serviceaccount:shop:jobs";
      const credentials = [
        `by-hand own ${subject}`,
        `of-another-cluster https://theirs ${subject}`,
        "of-another-account own system:serviceaccount:shop:other",
        `${own[1]} own ${subject}`,
      ];

      expect((await askFor({ identity: { properties }, credentials })).problems).toEqual([
        expect.stringMatching(
          RegExp(`credential by-hand for ${subject}, .* delete --ids \\S+/by-hand$`),
        ),
      ]);
    });

    it("is read, which is another role than to let somebody log in as it", async () => {
      const answer = { identity: "unreadable", permissions: [{ actions: ["other"] }] } as const;

      expect((await askFor(answer)).problems).toEqual([
        expect.stringMatching(/may not read the identity .* --role 'Reader' --scope .*kubernetes$/),
        expect.stringMatching(
          /'Managed Identity Federated Identity Credential Contributor' --scope/,
        ),
      ]);
      // Who asks for the identity itself says that it may not be read.
      const cluster = { machineIdentity: false, identityId };
      expect((await askFor(answer, [], cluster)).problems).toEqual([
        expect.stringMatching(
          /'Managed Identity Federated Identity Credential Contributor' --scope/,
        ),
      ]);
    });

    it("is in the cluster's subscription, where its federated credential is written", async () => {
      const elsewhere = "00000000-1111-2222-3333-444444444444";
      const there = identityId.replace(subscriptionId, elsewhere);
      const [app] = accounts.map((one) => ({ ...one, identityId: there }));
      const azure = { identity: { properties } };
      const inCapitals = [{ ...app!, identityId: identityId.toUpperCase() }];

      expect((await askFor(azure, [app!])).problems).toEqual([
        expect.stringMatching(
          RegExp(
            `${there}, expected .* subscription, ${subscriptionId}, .* or give roles in its place`,
            "i",
          ),
        ),
      ]);
      expect(
        (await askFor(azure, [], { machineIdentity: false, identityId: there })).problems,
      ).toEqual([
        expect.stringMatching(
          RegExp(`^identityId is ${there}, expected .*: .*config rm machineIdentity`),
        ),
      ]);
      expect((await askFor(azure, inCapitals)).problems).toEqual([]);
      // Machines carry an identity of any subscription.
      expect((await askFor(azure, [], { ...none, identityId: there })).problems).toEqual([]);
      expect((await ask(azure, there)).problems).toEqual([]);
    });

    it("is the cluster's where its own pods log in as it, and then has to be one that the login may have them do so", async () => {
      const cluster = { machineIdentity: false, identityId };
      const permissions = [{ actions: ["*/read"], notActions: [] }];
      const { problems } = await askFor({ identity: { properties }, permissions }, [], cluster);

      expect(problems).toEqual([expect.stringMatching(/may not let service accounts log in as /)]);
      // Who asks for the identity itself says that there is none.
      expect((await askFor({}, [], cluster)).problems).toEqual([]);
      expect((await askFor({}, [], { ...cluster, machineIdentity: true })).asked).toEqual([]);
    });

    it("is not asked for where there is none", async () => {
      const made = accounts.map((one) => ({ ...one, identityId: "" }));

      expect((await askFor({}, made)).asked).toEqual([]);
    });
  });
});
