import { asPlanned, hasManifests, LocalCloud, succeeded } from "../../../tools/lab/local-cloud";

jest.setTimeout(600_000);

const secret = "the-secret-of-a-principal";

describe("a service principal in place of a living cluster's managed identity", () => {
  const settings = hasManifests ? {} : { cni: "flannel", diskDriver: false };
  let cloud: LocalCloud;
  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings);
    succeeded(await cloud.stack.up("--skip-preview"));
  });
  afterAll(() => cloud?.stop());

  it("takes the identity from the control plane, and touches no other machine", async () => {
    const before = (await cloud.requests()).length;
    await cloud.stack.configure({
      ...settings,
      servicePrincipalClientId: "3f1c7a52-6f0e-4b6f-9d0e-2f6f6f0f3c11",
    });
    const set = ["config", "set", "--secret", "servicePrincipalClientSecret", secret];
    const { code } = await cloud.stack.command(...set, "--config-file", cloud.stack.place.config);
    expect(code).toBe(0);

    asPlanned(await cloud.stack.up());

    const writes = (await cloud.requests())
      .slice(before)
      .filter(({ method }) => method !== "GET" && method !== "POST")
      .map(({ method, id }) => `${method} ${id.split("/").slice(-2).join("/")}`);
    expect(writes.filter((write) => /virtualMachines/.test(write))).toEqual([
      "PUT virtualMachines/zoned-local-cp-1",
    ]);
    expect(writes).toContain("DELETE userAssignedIdentities/zoned-local");
  });

  it("is given to the cloud provider, and not shown in the exported state", async () => {
    const config = await cloud.kubectl(
      ...["get", "secret", "azure-cloud-provider", "--namespace", "kube-system"],
      ...["--output", "jsonpath={.data.cloud-config}"],
    );

    expect(Buffer.from(config, "base64").toString()).toContain(secret);
    expect(JSON.stringify(await cloud.stack.stackExport())).not.toContain(secret);
  });
});
