import { text } from "node:stream/consumers";
import * as pulumi from "@pulumi/pulumi";

import { makePlan, Plan } from "../../components/plan/plan";
import { loadSettings } from "../../components/settings/load";
import { subscriptionPath } from "../../tools/local-azure/arm/resources/resource";
import type { ResourceManager } from "../../tools/local-azure/arm/resource-manager";
import { serveRest } from "../../tools/local-azure/arm/rest/rest";
import { newArm } from "../../tools/local-azure/tests/support/arm/fixture";
import { serve } from "./listen";
import { Recorded, Recorder, valueOf } from "./record";
import { access, settingsWith, stackValues, Values } from "./stack";

const keyPem =
  "-----BEGIN EC PRIVATE KEY-----\nthe key that nobody may see\n-----END EC PRIVATE KEY-----\n";

const vmType = "azure-native:compute:VirtualMachine";
const stepType = "azure-native:compute:VirtualMachineExtension";

/** What Azure, a key's maker and a certificate's fill in. */
export const filledIn = {
  [vmType]: ({ name }: { readonly name: string }) => ({
    vmId: `id of ${name}`,
    timeCreated: "2026-11-21T09:00:00Z",
  }),
  [stepType]: ({ name }: { readonly name: string }) => ({
    id: `/virtualMachines/${name.replace(/-bootstrap$/, "")}/extensions/bootstrap`,
    provisioningState: "Succeeded",
  }),
  "azure-native:managedidentity:UserAssignedIdentity": { principalId: "p", clientId: "c" },
  "tls:index/privateKey:PrivateKey": {
    privateKeyPem: pulumi.secret(keyPem),
    publicKeyPem: "public",
  },
  "tls:index/selfSignedCert:SelfSignedCert": { certPem: "certificate" },
  "tls:index/certRequest:CertRequest": { certRequestPem: "request" },
  "tls:index/locallySignedCert:LocallySignedCert": {
    certPem: "certificate",
    validityEndTime: "2027-11-21T09:00:00Z",
  },
};

type Outputs = Record<string, any>;

/** What an update has asked for, what it has said, and what it has left for the next one. */
export interface Update {
  readonly requests: readonly Recorded[];
  readonly outputs: Outputs;
}

/** What is there when an update begins. */
export interface Before extends Update {
  /** Machines that somebody has deleted. */
  readonly gone?: readonly string[];
  /** Whether somebody has removed all tags. */
  readonly isUntagged?: boolean;
  /** Tags that somebody else has added. */
  readonly addedTags?: Readonly<Record<string, string>>;
  /** Disks that Azure does not offer this subscription any more. */
  readonly withoutDisks?: RegExp;
  /** What Azure says, whatever policies are asked about. */
  readonly ofPolicies?: { readonly status: number; readonly body: object };
}

/** Nothing: the first update. */
export const nothing: Before = { requests: [], outputs: {} };

/** Type and name of a gallery and of what is in it, by their place in a path. */
const inGalleries: Readonly<Record<string, readonly [type: string, name: string]>> = {
  galleries: ["azure-native:compute:Gallery", "galleryName"],
  images: ["azure-native:compute:GalleryImage", "galleryImageName"],
  versions: ["azure-native:compute:GalleryImageVersion", "galleryImageVersionName"],
};

/** What Azure shows in the cluster's resource group, by the end of a path. */
function shownIn(before: Before, path: string): object | undefined {
  const { requests, gone = [], isUntagged, addedTags = {} } = before;
  const group = requests.find(({ type }) => type === "azure-native:resources:ResourceGroup");
  if (group === undefined) return undefined;
  const tagsOf = (one: Recorded) => (isUntagged ? {} : { ...one.inputs["tags"], ...addedTags });
  const machines = requests
    .filter(({ type, inputs }) => type === vmType && !gone.includes(inputs["vmName"]))
    .map((one) => ({
      name: one.inputs["vmName"],
      tags: tagsOf(one),
      properties: {
        ...filledIn[vmType](one),
        provisioningState: "Succeeded",
        hardwareProfile: one.inputs["hardwareProfile"],
      },
    }));
  const [, machine] = /\/virtualMachines\/([^/]+)\//.exec(path) ?? [];
  if (path.endsWith("/extensions/bootstrap")) {
    const step = requests.find(({ name }) => name === `${machine}-bootstrap`)!;
    return { tags: tagsOf(step), properties: { provisioningState: "Succeeded" } };
  }
  if (path.endsWith("/instanceView")) return { statuses: [{ code: "PowerState/running" }] };
  if (path.endsWith("/virtualMachines")) return { value: machines };
  const [, place = "", called] = /\/(\w+)\/([^/]+)$/.exec(path) ?? [];
  const [type, property = ""] = inGalleries[place] ?? [];
  const own = requests.find((one) => one.type === type && one.inputs[property] === called);
  if (type !== undefined) return own && { name: called, tags: tagsOf(own) };
  if (path.includes("/providers/")) return { value: [] };
  const { resourceGroupName: name, location } = group.inputs;
  return { name, location, tags: tagsOf(group), properties: { provisioningState: "Succeeded" } };
}

/** What others have made for the encryption that these settings want. */
async function makeEncryption(arm: ResourceManager, values: Values): Promise<void> {
  if (values["encryptionAtHost"] === true) await arm.register("Microsoft.Compute/EncryptionAtHost");
  const setId = values["diskEncryptionSetId"];
  if (typeof setId !== "string") return;
  const { location } = stackValues("prod");
  await arm.put(setId.split("/providers/")[0]!, { location });
  await arm.put(setId, {
    location,
    identity: { type: "SystemAssigned" },
    activeKey: { keyUrl: "https://ours.vault.azure.net/keys/disks/1" },
  });
}

/** The subnets of others that these settings name. */
async function makeSubnets(arm: ResourceManager, { nodeSubnets = [] }: Values): Promise<void> {
  const { location } = stackValues("prod");
  for (const [index, id] of (nodeSubnets as string[]).entries()) {
    const [networkId = ""] = id.split("/subnets/");
    await arm.put(networkId.split("/providers/")[0]!, { location });
    await arm.put(networkId, { location, addressSpace: { addressPrefixes: ["10.1.0.0/16"] } });
    await arm.put(id, { addressPrefix: `10.1.${index}.0/24` });
  }
}

/** Works with these settings on a local Azure that has what an update has left. */
async function around<T>(
  values: Values,
  before: Before,
  work: (recorder: Recorder) => Promise<T>,
): Promise<T> {
  const { arm } = newArm();
  if (values["resourceGroup"] !== undefined) {
    const groupId = `${subscriptionPath}/resourceGroups/${values["resourceGroup"]}`;
    await arm.put(groupId, { location: stackValues("prod")["location"] });
  }
  await makeEncryption(arm, values);
  await makeSubnets(arm, values);
  const rest = await serveRest(arm, 0);
  const azure = await serve(async (request, response) => {
    const { url = "", method, headers } = request;
    const { pathname } = new URL(url, "http://localhost");
    const isOfCluster =
      /\/resourceGroups\//i.test(pathname) && pathname !== values["diskEncryptionSetId"];
    const shown = isOfCluster ? shownIn(before, pathname) : undefined;
    if (shown !== undefined) return response.end(JSON.stringify(shown));
    if (before.ofPolicies && pathname.endsWith("/checkPolicyRestrictions")) {
      const { status, body } = before.ofPolicies;
      return response.writeHead(status).end(JSON.stringify(body));
    }
    const { authorization = "" } = headers;
    const answer = await fetch(`http://127.0.0.1:${rest.port}${url}`, {
      method,
      headers: { authorization, "content-type": "application/json" },
      ...(method === "POST" && { body: await text(request) }),
    });
    const body = await answer.json();
    if (before.withoutDisks && pathname.endsWith("/skus")) {
      body.value = body.value.filter(
        ({ name }: { name: string }) => !before.withoutDisks!.test(name),
      );
    }
    return response.writeHead(answer.status).end(JSON.stringify(body));
  });
  const recorder = await Recorder.start({
    filledIn,
    calls: {
      "azure-native:authorization:getClientToken": () => ({ token: "local" }),
      "pulumi:pulumi:readStackOutputs": () => ({ outputs: before.outputs }),
    },
  });
  settingsWith({
    ...access,
    ...stackValues("prod"),
    clusterName: "zoned-test",
    cni: "flannel",
    diskDriver: false,
    resourceManagerEndpoint: azure,
    ...values,
  });
  try {
    return await work(recorder);
  } finally {
    await rest.close();
  }
}

/** The transformations of the program itself come before the recorder's look at their result. */
function watchLast({ watch }: Recorder): jest.SpyInstance {
  const register = pulumi.runtime.registerStackTransformation;
  register(watch);
  return jest.spyOn(pulumi.runtime, "registerStackTransformation").mockImplementation((one) => {
    register(one);
    register(watch);
  });
}

/** Runs the whole program, on the settings of stack prod and these, as an update would. */
export const update = (
  values: Values = {},
  before = nothing,
  name: "index" | "image" = "index",
): Promise<Update> =>
  around(values, before, async (recorder) => {
    let outputs: Outputs = {};
    await pulumi.runtime.runInPulumiStack(async () => {
      const watching = watchLast(recorder);
      const program = require(`../../${name}`) as () => Promise<Outputs>;
      outputs = await program();
      watching.mockRestore();
      return outputs;
    });
    const requests = await recorder.all();
    return { requests, outputs: await valueOf(pulumi.output(outputs)) };
  });

/** What the next update would do, or why it is refused, and all that it says of it. */
export const planned = (
  values: Values,
  before: Before,
): Promise<{ readonly plan?: Plan; readonly says: string }> =>
  around(values, before, async () => {
    const says: string[] = [];
    const logs = (["info", "warn"] as const).map((level) =>
      jest.spyOn(pulumi.log, level).mockImplementation(async (...[text]) => void says.push(text)),
    );
    const plan = await makePlan(loadSettings()).catch(
      (error: Error) => void says.push(error.message),
    );
    logs.forEach((log) => log.mockRestore());
    return { ...(plan && { plan }), says: says.join("\n") };
  });
