import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import {
  healthyCluster,
  serveCluster,
  threeByThree,
} from "../../doctor/tests/support/cluster-state";
import { healthy } from "../../doctor/tests/support/seen";
import { runCommand } from "../../../tests/support/tools";
import { freePort, serve } from "../../../tests/support/listen";
import { testFolder } from "../../../tests/support/test-folder";

const folder = testFolder();
const file = join(folder, "prod.svg");
const group = "/subscriptions/5ca1ab1e/resourceGroups/zoned-prod";
const [gone, busy] = [Symbol(), Symbol()];
let timesBusy = 0;
/** What Resource Manager has, by path; it refuses to say anything of others. */
let resources: Record<string, unknown>;
let endpoint: string;
let api: Awaited<ReturnType<typeof serveCluster>>;

beforeAll(async () => {
  api = await serveCluster({ current: healthyCluster() });
  endpoint = await serve(({ url = "", headers }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    const body = headers.authorization === "Bearer the-token" ? resources[pathname] : undefined;
    const refuse = (status: number, code: string) =>
      response.writeHead(status).end(JSON.stringify({ error: { code, message: "no" } }));
    if (body === undefined) refuse(403, "AuthorizationFailed");
    else if (body === gone) refuse(404, "ResourceGroupNotFound");
    else if (body === busy) {
      timesBusy += 1;
      response.setHeader("retry-after", 3);
      refuse(429, "TooManyRequests");
    } else response.end(JSON.stringify(body));
  });
});

const program = (name: string, lines: readonly string[]) =>
  writeFileSync(join(folder, name), `#!/bin/sh\n${lines.join("\n")}\n`, { mode: 0o755 });

beforeEach(() => {
  rmSync(file, { force: true });
  const { azure } = healthy();
  const network = (type: string, value: unknown) => ({
    [`${group}/providers/Microsoft.Network/${type}`]: { value },
  });
  const compute = `${group}/providers/Microsoft.Compute`;
  const [{ id, name, zones, size, osDisk }] = azure.machines as [(typeof azure.machines)[number]];
  resources = {
    [group]: { name: "zoned-prod", location: "southeastasia" },
    [`${compute}/virtualMachines`]: {
      value: [
        {
          ...{ id, name, zones },
          properties: { hardwareProfile: { vmSize: size }, storageProfile: { osDisk } },
        },
      ],
    },
    [`${compute}/virtualMachines/${name}/extensions/bootstrap`]: {
      properties: { provisioningState: "Succeeded" },
    },
    [`${compute}/virtualMachines/${name}/instanceView`]: {
      statuses: [{ code: "PowerState/stopped" }],
    },
    [`${compute}/disks`]: { value: azure.disks },
    ...network("networkInterfaces", azure.interfaces),
    ...network("virtualNetworks", azure.networks),
    ...network("natGateways", azure.gateways),
    ...network("publicIPAddresses", azure.addresses),
    ...network("loadBalancers", azure.balancers),
  };
  havePulumi(api.kubeconfig);
  program("az", [
    `case "$*" in`,
    `"account get-access-token --subscription 5ca1ab1e --query accessToken --output tsv") echo the-token;;`,
    `"cloud show --query endpoints.resourceManager --output tsv") echo ${endpoint}/;;`,
    `*) exit 2;;`,
    "esac",
  ]);
});

/** A pulumi on the PATH that has one stack, `prod`. */
function havePulumi(kubeconfig: string): void {
  const outputs = { kubeconfig, machines: threeByThree.machines };
  const type = "azure-native:resources:ResourceGroup";
  const state = { version: 3, deployment: { resources: [{ urn: "g", type, id: group }] } };
  writeFileSync(join(folder, "output.json"), JSON.stringify(outputs));
  writeFileSync(join(folder, "export.json"), JSON.stringify(state));
  program("pulumi", [`cat '${folder}'/"$2".json`]);
}

const picture = (...words: string[]) =>
  runCommand(folder, ["picture", "--stack", "prod", ...words]);

it("draws what the login of az sees of the stack, and prints where", async () => {
  const { code, stdout } = await picture("--output", file);

  expect(stdout).toMatch(/^stack prod: 7 machines, 3 zones, 1 load balancer, not healthy/);
  expect(stdout).toContain(`\n${file}\n`);
  expect(readFileSync(file, "utf8")).toMatch(
    />VNet zoned-prod-vnet 172\.16\.0\.0\/16<.*>zoned-prod-cp-1<.*>VM stopped<.*>172\.16\.1\.4</s,
  );
  expect(code).toBe(0);
});

it("draws it also where the API does not answer", async () => {
  havePulumi(api.kubeconfig.replace(/localhost:\d+/, `localhost:${await freePort()}`));

  const { code, stdout } = await picture("--output", file);

  expect(stdout).toContain("API does not answer");
  expect(readFileSync(file, "utf8")).toMatch(/>Node not asked<.*>VM stopped</s);
  expect(code).toBe(0);
});

it("asks for nothing again once Azure has refused something", async () => {
  delete resources[`${group}/providers/Microsoft.Compute/disks`];
  resources[`${group}/providers/Microsoft.Network/loadBalancers`] = busy;

  expect(await picture("--output", file)).toMatchObject({ code: 2 });

  expect(timesBusy).toBe(1);
});

it.each<[string, () => unknown, RegExp]>([
  [
    "az has no login",
    () => program("az", ["echo 'Please run az login' >&2; exit 1"]),
    /az account get-access-token has failed: Please run az login\n {2}az login/,
  ],
  [
    "the login may not read",
    () => delete resources[`${group}/providers/Microsoft.Compute/disks`],
    /403 AuthorizationFailed/,
  ],
  [
    "Azure has no such group any more",
    () => (resources[group] = gone),
    /Azure has no .*resourceGroups\/zoned-prod/,
  ],
  [
    "the state has no group",
    () => writeFileSync(join(folder, "export.json"), '{"version":3,"deployment":{}}'),
    /stack prod has no resource group: run pulumi up/,
  ],
])("writes nothing, ends with 2 and says why when %s", async (_, change, says) => {
  change();

  const { code, stderr } = await picture("--output", file);

  expect(stderr).toMatch(says);
  expect(stderr).not.toMatch(/^ +at |the-token/m);
  expect(readdirSync(folder)).not.toContain("prod.svg");
  expect(code).toBe(2);
});

it("ends with 2 where the file cannot be written", async () => {
  const { code, stderr } = await picture("--output", join(folder, "absent", "prod.svg"));

  expect(stderr).toMatch(/absent\/prod\.svg cannot be written: .*--output/);
  expect(code).toBe(2);
});
