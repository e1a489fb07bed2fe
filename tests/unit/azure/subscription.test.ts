import * as pulumi from "@pulumi/pulumi";

import { ArmClient, connect } from "../../../components/azure/resource-manager";
import { dnsLabel } from "../../../components/azure/resource-names";
import { ownIdentityProblems } from "../../../components/azure/rights";
import { getShown, shownAs, type ShownResource } from "../../../components/azure/shown";
import {
  accountProblems,
  providerProblems,
  subscriptionProblems,
} from "../../../components/azure/subscription";
import { plannedResources } from "../../../components/plan/planned-resources";
import { machinesOf } from "../../../components/settings/topology";
import { subscriptionPath } from "../../../tools/local-azure/arm/resources/resource";
import { newArm } from "../../../tools/local-azure/tests/support/arm/fixture";
import { connectionTo } from "../../support/azure";
import { serve } from "../../support/listen";
import { Recorder } from "../../support/record";
import { subscriptionId, validSettings } from "../../support/sample";

describe("subscription", () => {
  beforeAll(() => Recorder.start());

  interface Azure {
    /** Namespaces that are not registered. */
    readonly unregistered?: readonly string[];
    /** Labels that are not free. */
    readonly labels?: readonly string[];
    readonly state?: string;
    /** What the login may do; undefined where Azure does not say it. */
    readonly permissions?: readonly object[];
    /** The same in the resource group platform. */
    readonly inGroup?: readonly object[];
    /** Whether there is a cluster. */
    readonly isBegun?: boolean;
    /** What the cluster has already. */
    readonly shown?: readonly (readonly [string, ShownResource])[];
  }

  async function withAzure(
    {
      unregistered = [],
      labels = [],
      state = "Enabled",
      permissions,
      inGroup = [],
      isBegun = false,
      shown = [],
    }: Azure,
    settings: Partial<typeof validSettings> = {},
  ): Promise<{ readonly problems: string[]; readonly asked: string[] }> {
    const asked: string[] = [];
    const azure = await serve(({ url = "" }, response) => {
      const { pathname, searchParams } = new URL(url, "http://localhost");
      const [, path] = /^\/subscriptions\/[^/]+\/providers\/(.*)$/.exec(pathname) ?? [];
      if (
        pathname.endsWith("/resourceGroups/platform/providers/Microsoft.Authorization/permissions")
      )
        return void response.end(JSON.stringify({ value: inGroup }));
      if (path === undefined) return void response.end(JSON.stringify({ state }));
      if (path === "Microsoft.Authorization/permissions") {
        response.statusCode = permissions ? 200 : 404;
        return void response.end(JSON.stringify({ value: permissions }));
      }
      asked.push(path);
      const [namespace = "", rest] = path.split("/");
      const registrationState = unregistered.includes(namespace) ? "NotRegistered" : "Registered";
      if (rest !== undefined && registrationState === "NotRegistered") {
        response.statusCode = 409;
        return void response.end('{"error":{"code":"MissingSubscriptionRegistration"}}');
      }
      const available = !labels.includes(searchParams.get("domainNameLabel") ?? "");
      const body = rest === undefined ? { namespace, registrationState } : { available };
      response.end(JSON.stringify(body));
    });
    const arm = new ArmClient(azure, "token");
    const connection = { arm, subscriptionId, tenantId: "tenant" };
    const all = { ...validSettings, ...settings };
    const resources = plannedResources(all, machinesOf(all), subscriptionId);
    const problems = await Promise.all([
      isBegun
        ? ownIdentityProblems(all, new Map(shown), connection)
        : subscriptionProblems(all, new Map(shown), connection),
      providerProblems(resources, new Map(shown), connection),
    ]);
    return { problems: problems.flat(), asked };
  }

  it("finds nothing where all is registered and the name is free", async () => {
    const { problems, asked } = await withAzure({});

    expect(problems).toEqual([]);
    expect(asked).toContain("Microsoft.Network/locations/westeurope/CheckDnsNameAvailability");
  });

  it("names each resource provider that is not registered, and its command", async () => {
    const { problems } = await withAzure({
      unregistered: ["Microsoft.Compute", "Microsoft.ManagedIdentity"],
    });

    expect(problems.sort()).toEqual([
      expect.stringContaining("az provider register --namespace Microsoft.Compute --wait"),
      expect.stringContaining("az provider register --namespace Microsoft.ManagedIdentity --wait"),
    ]);
  });

  const servicePrincipal = { clientId: "id", clientSecret: undefined as never };
  const pods = { namespace: "shop", serviceAccount: "web", roles: [] };
  const [compute, network, identities, storage] = [
    "Microsoft.Compute",
    "Microsoft.Network",
    "Microsoft.ManagedIdentity",
    "Microsoft.Storage",
  ];

  it.each<[string, Partial<typeof validSettings>, string[]]>([
    ["a service principal", { servicePrincipal }, []],
    ["an identity of others", { identityId: "/ids/theirs" }, []],
    ["kubelets that pull", { servicePrincipal, registries: ["/ids/images"] }, [identities]],
    ["no identity on machines", { machineIdentity: false }, [identities, storage]],
    [
      "pods that log in as theirs",
      { servicePrincipal, workloadIdentities: [{ ...pods, identityId: "/ids/theirs" }] },
      [storage],
    ],
    [
      "pods that log in",
      { servicePrincipal, workloadIdentities: [{ ...pods, identityId: "" }] },
      [identities, storage],
    ],
  ])("asks for the providers of what is made alone: %s", async (_, settings, more) => {
    const { asked } = await withAzure({}, settings);

    const namespaces = asked.filter((path) => !path.includes("/"));
    expect(new Set(namespaces)).toEqual(new Set([compute, network, ...more]));
  });

  it("asks for no provider of what is there", async () => {
    const type = "Microsoft.Compute/virtualMachines";
    const { asked } = await withAzure({ shown: [["vm", { name: "vm", type }]] });

    expect(asked).toEqual(expect.arrayContaining([network, identities]));
    expect(asked).not.toContain(compute);
  });

  it("says of no name whether it is free where its provider is not registered", async () => {
    const { problems } = await withAzure({ unregistered: [network!] });

    expect(problems).toEqual([expect.stringContaining(`--namespace ${network} --wait`)]);
  });

  it("names the API's public address where another one is called so, whatever the API is called", async () => {
    const labels = [dnsLabel(validSettings.clusterName, subscriptionId)];
    const { problems } = await withAzure({ labels }, { apiName: "api.zoned.example" });

    expect(problems).toEqual([expect.stringMatching(/would be zoned-test-e708c06c .*clusterName/)]);
  });

  it("asks for no label where the API has no public address", async () => {
    const { problems, asked } = await withAzure({ labels: ["api"] }, { apiAccess: "private" });

    expect(problems).toEqual([]);
    expect(asked).not.toContainEqual(expect.stringContaining("CheckDnsNameAvailability"));
  });

  it("asks for no label whose address an interrupted update has made", async () => {
    const labels = [dnsLabel(validSettings.clusterName, subscriptionId)];
    const name = `${validSettings.clusterName}-api`;
    const address = [shownAs("azure-native:network:PublicIPAddress", name), { name }] as const;

    expect((await withAzure({ labels, shown: [address] })).problems).toEqual([]);
  });

  it("says of a subscription that is disabled what to do", async () => {
    const { problems } = await withAzure({ state: "Disabled" });

    expect(problems).toEqual([expect.stringMatching(/is Disabled,.* az account set/)]);
  });

  it.each(["Enabled", "Warned", "PastDue"])("takes a subscription that is %s", async (state) => {
    expect((await withAzure({ state })).problems).toEqual([]);
  });

  describe("of a login's rights", () => {
    const contributor = {
      actions: ["*"],
      notActions: ["Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write"],
    };
    const administrator = { actions: ["*/read", "Microsoft.Authorization/*"], notActions: [] };

    it.each([
      ["an owner", [{ actions: ["*"], notActions: [] }]],
      ["a contributor who is an administrator of access too", [contributor, administrator]],
      [
        "one with a role for just this",
        [
          {
            actions: [
              "Microsoft.Authorization/roleAssignments/*",
              "Microsoft.Authorization/roleDefinitions/*",
              "Microsoft.Compute/virtualMachines/*",
              "Microsoft.Network/virtualNetworks/*",
              "Microsoft.Resources/subscriptions/resourceGroups/*",
            ],
          },
        ],
      ],
      ["one whose rights Azure does not say", undefined],
    ])("finds nothing of %s", async (_, permissions) => {
      expect((await withAzure({ permissions })).problems).toEqual([]);
    });

    it("names what a contributor lacks, and both ways on", async () => {
      const { problems } = await withAzure({ permissions: [contributor] });

      expect(problems).toEqual([
        expect.stringMatching(
          /may not create role definitions, nor create role assignments in subscription .*az role assignment create .* --role 'User Access Administrator' --scope \/subscriptions\/.*servicePrincipalClientId/,
        ),
      ]);
    });

    it("asks for these of a living cluster that is to get an identity, and of none that has it", async () => {
      const living = { isBegun: true, permissions: [contributor] };
      const name = validSettings.clusterName;
      const token = "azure-native:managedidentity:UserAssignedIdentity";
      const shown = [[shownAs(token, name), { name }] as const];

      expect((await withAzure(living)).problems).toEqual([
        expect.stringMatching(/^the login may not create role definitions, nor create role ass/),
      ]);
      expect((await withAzure({ ...living, shown })).problems).toEqual([]);
      expect((await withAzure(living, { servicePrincipal })).problems).toEqual([]);
    });

    it("takes a contributor where an application has its rights already", async () => {
      const azure = { permissions: [contributor] };

      expect((await withAzure(azure, { servicePrincipal })).problems).toEqual([]);
    });

    it("takes a reader of the subscription who is a contributor of the group that exists already", async () => {
      const azure = { permissions: [{ actions: ["*/read"] }], inGroup: [contributor] };
      const { problems } = await withAzure(azure, { resourceGroup: "platform", servicePrincipal });

      expect(problems).toEqual([]);
    });

    it("names what a reader of that group lacks in it, and asks for nothing in the subscription", async () => {
      const reader = [{ actions: ["*/read"] }];
      const { problems } = await withAzure(
        { permissions: reader, inGroup: reader },
        { resourceGroup: "platform", servicePrincipal },
      );

      expect(problems).toEqual([
        expect.stringMatching(
          /may not create networks, nor create machines in resource group platform: .*--scope \S+\/resourceGroups\/platform$/,
        ),
      ]);
    });

    it("asks for no right to make networks where machines are in subnets of others", async () => {
      const reader = [{ actions: ["*/read"] }];
      const nodeSubnets = ["/subscriptions/s/resourceGroups/g/providers/of/their/subnet"];
      const { problems } = await withAzure(
        { permissions: reader, inGroup: reader },
        { resourceGroup: "platform", servicePrincipal, nodeSubnets },
      );

      expect(problems).toEqual([expect.stringMatching(/^the login may not create machines in /)]);
    });

    it("names all that a reader lacks, with the role for each", async () => {
      const { problems } = await withAzure({ permissions: [{ actions: ["*/read"] }] });

      expect(problems).toEqual([
        expect.stringMatching(/resource groups.*networks.*machines.*'Contributor'/),
        expect.stringMatching(/'User Access Administrator'/),
      ]);
    });
  });

  it("names the issuer's account where another one has its name, and not where it is there already", async () => {
    const { arm } = newArm();
    const connection = await connectionTo(arm);
    const settings = { ...validSettings, machineIdentity: false };
    const none = new Map<string, ShownResource>();
    const problemsWith = (isBegun: boolean, shown = none) =>
      accountProblems(settings, { isBegun, shown }, connection);
    // Every token that is out names it, so that it is the same for ever.
    const name = "oidc109010bd512b734763cc";
    expect(await problemsWith(false)).toEqual([]);
    const group = `${subscriptionPath}/resourceGroups/team-a`;
    await arm.put(group, { location: "westeurope" });
    await arm.put(`${group}/providers/Microsoft.Storage/storageAccounts/${name}`, {
      ...{ location: "westeurope", kind: "StorageV2", sku: { name: "Standard_ZRS" } },
    });

    expect(await problemsWith(false)).toEqual([
      expect.stringMatching(
        new RegExp(`would be ${name}, .*\\(pulumi config set clusterName NAME\\)$`),
      ),
    ]);
    // A cluster's name stays.
    expect(await problemsWith(true)).toEqual([
      expect.stringMatching(/have that one deleted, or take away what wants an issuer/),
    ]);
    const own = shownAs("azure-native:storage:StorageAccount", name);
    expect(await problemsWith(true, new Map([[own, { name }]]))).toEqual([]);
    const without = { ...settings, machineIdentity: true };
    expect(await accountProblems(without, { isBegun: true, shown: none }, connection)).toEqual([]);
  });

  it.each<[Record<string, string> | undefined, RegExp[]]>([
    [{ publicAccess: "None" }, [/^the container issuer .* --name issuer --public-access blob$/]],
    [{ publicAccess: "Blob" }, []],
    [{ publicAccess: "Container" }, []],
    [undefined, []],
  ])("says where others have closed the issuer's container, of %j", async (made, said) => {
    const { arm } = newArm();
    const connection = await connectionTo(arm);
    const group = `${subscriptionPath}/resourceGroups/${validSettings.clusterName}`;
    const account = `${group}/providers/Microsoft.Storage/storageAccounts/oidc109010bd512b734763cc`;
    await arm.put(group, { location: "westeurope" });
    await arm.put(account, {
      ...{ location: "westeurope", kind: "StorageV2", sku: { name: "Standard_ZRS" } },
      allowBlobPublicAccess: true,
    });
    if (made) await arm.put(`${account}/blobServices/default/containers/issuer`, made);
    const settings = { ...validSettings, machineIdentity: false };
    const shown = new Map(await getShown(connection.arm, group, settings));

    expect(await accountProblems(settings, { isBegun: true, shown }, connection)).toEqual(
      said.map((text) => expect.stringMatching(text)),
    );
  });

  it.each<[object, string]>([
    [{ allowBlobPublicAccess: false }, "--allow-blob-public-access true"],
    [{ publicNetworkAccess: "Disabled" }, "--public-network-access Enabled"],
    [{ publicNetworkAccess: "SecuredByPerimeter" }, "--public-network-access Enabled"],
    [{ networkRuleSet: { defaultAction: "Deny" } }, "--default-action Allow"],
    [{ allowSharedKeyAccess: false }, "--allow-shared-key-access true"],
    [
      { allowBlobPublicAccess: false, allowSharedKeyAccess: false },
      "--allow-blob-public-access true --allow-shared-key-access true",
    ],
    [{ publicNetworkAccess: "Enabled", allowSharedKeyAccess: true }, ""],
  ])("says what others have changed of the issuer's account: %j", async (change, remedy) => {
    const { arm } = newArm();
    const connection = await connectionTo(arm);
    const name = "oidc109010bd512b734763cc";
    const group = `${subscriptionPath}/resourceGroups/${validSettings.clusterName}`;
    await arm.put(group, { location: "westeurope" });
    await arm.put(`${group}/providers/Microsoft.Storage/storageAccounts/${name}`, {
      ...{ location: "westeurope", kind: "StorageV2", sku: { name: "Standard_ZRS" } },
      ...{ allowBlobPublicAccess: true, ...change },
    });
    const settings = { ...validSettings, machineIdentity: false };
    const shown = new Map(await getShown(connection.arm, group, settings));

    const problems = await accountProblems(settings, { isBegun: true, shown }, connection);

    const command = `az storage account update --name ${name} --resource-group ${validSettings.clusterName} ${remedy}`;
    expect(problems).toEqual(
      remedy === "" ? [] : [expect.stringMatching(new RegExp(`Entra .*${command}$`))],
    );
  });

  it.each(["public", "private"] as const)(
    "is answered by the local Azure as well: %s",
    async (apiAccess) => {
      const connection = await connectionTo(newArm().arm);
      const settings = { ...validSettings, apiAccess, apiName: "k8.zoned.example" };
      await expect(subscriptionProblems(settings, new Map(), connection)).resolves.toEqual([]);
    },
  );
});

describe("connection", () => {
  const of = (subscriptionId: string) => ({
    subscriptionId,
    tenantId: `tenant of ${subscriptionId}`,
  });

  let asked: string[];
  const { ARM_SUBSCRIPTION_ID } = process.env;
  beforeEach(() => {
    delete process.env["ARM_SUBSCRIPTION_ID"];
    asked = [];
  });
  afterEach(() => {
    if (ARM_SUBSCRIPTION_ID !== undefined) process.env["ARM_SUBSCRIPTION_ID"] = ARM_SUBSCRIPTION_ID;
    pulumi.runtime.setAllConfig({});
  });

  /** A login that sees these subscriptions, the last of which is its own. */
  const connection = async (
    subscriptions: readonly string[],
    login = () => of(subscriptions.at(-1) ?? ""),
  ) => {
    const resourceManagerEndpoint = await serve(({ url = "" }, response) => {
      const [, id] = /^\/subscriptions\/([\w-]+)\?/.exec(url) ?? [];
      response.end(JSON.stringify(id ? of(id) : { value: subscriptions.map(of) }));
    });
    await Recorder.start({
      calls: {
        "azure-native:authorization:getClientConfig": () => {
          asked.push("getClientConfig");
          return login();
        },
        "azure-native:authorization:getClientToken": () => {
          asked.push("getClientToken");
          login();
          return { token: "secret" };
        },
      },
    });
    return connect({ ...validSettings, resourceManagerEndpoint });
  };

  it("is that of the only subscription, or of the login's among several", async () => {
    expect(await connection(["one"])).toMatchObject(of("one"));
    expect(asked).toEqual(["getClientToken"]);
    expect(await connection(["other", "own"])).toMatchObject(of("own"));
  });

  it.each<[where: string, name: () => void]>([
    ["ARM_SUBSCRIPTION_ID", () => (process.env["ARM_SUBSCRIPTION_ID"] = "named")],
    [
      "the plugin's setting, whatever ARM_SUBSCRIPTION_ID says",
      () => {
        process.env["ARM_SUBSCRIPTION_ID"] = "other";
        pulumi.runtime.setConfig("azure-native:subscriptionId", "named");
      },
    ],
  ])(
    "is that of the subscription in %s, and asks the plugin for nothing but a token",
    async (_, name) => {
      name();

      expect(await connection(["own", "named"])).toMatchObject(of("named"));
      expect(asked).toEqual(["getClientToken"]);
    },
  );

  it("says what to do without a login, in the plugin's words and its own", async () => {
    const refused = connection(["one"], () => {
      // As gRPC has it.
      throw Object.assign(new Error(), { details: "Please run 'az login' to setup account" });
    });

    await expect(refused).rejects.toThrow(
      /no login that works: .*Please run 'az login' to setup account.*\n.*az login; az account set --subscription .*ARM_CLIENT_ID.*docs\/azure\.md/s,
    );
    await refused.catch((error: unknown) => expect(pulumi.RunError.isInstance(error)).toBe(true));
  });

  it("says what to do without a subscription", async () => {
    await expect(connection([])).rejects.toThrow(
      /no subscription: az account list .*az account set/,
    );
  });
});
