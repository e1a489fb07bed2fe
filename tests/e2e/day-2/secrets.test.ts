import { readFileSync } from "node:fs";

import { asPlanned, hasManifests, LocalCloud, unchanged } from "../../../tools/lab/local-cloud";

/** A proxy that nobody asks: simulated machines fetch nothing. */
const proxyWith = (password: string) => `http://me:${password}@proxy.example:3128`;

describe("a secret of the settings", () => {
  const passwords = ["first-hush", "second-hush"];
  const principal = "the-secret-of-a-principal";
  const settings = {
    workerPools: [{ name: "workers", count: 1, size: "Standard_B2s" }],
    ...(hasManifests ? {} : { cni: "flannel", diskDriver: false }),
  };
  let cloud: LocalCloud;
  /** All that the engine has said, previews included. */
  const said: string[] = [];

  const up = async () => {
    const preview = await cloud.stack.preview("--diff");
    const run = await cloud.stack.up();
    said.push(JSON.stringify([preview, run]));
    return run;
  };

  const setProxy = (address: string) => cloud.stack.setSecret("httpProxy.https", address);

  const writesSince = async (before: number) =>
    (await cloud.requests())
      .slice(before)
      .filter(({ method }) => ["PUT", "PATCH", "DELETE"].includes(method))
      .map(({ method, id }) => `${method} ${id.split("/").slice(-2).join("/")}`);

  const controller = async () =>
    JSON.parse(
      await cloud.kubectl(
        ...["get", "deployment", "cloud-controller-manager", "--namespace", "kube-system"],
        ...["--output", "json"],
      ),
    ).spec.template;

  const inSecret = async (key: string) => {
    const path = `jsonpath={.data.${key}}`;
    const name = ["azure-cloud-provider", "--namespace", "kube-system"];
    const data = await cloud.kubectl("get", "secret", ...name, "--output", path);
    return Buffer.from(data, "base64").toString();
  };

  beforeAll(async () => {
    cloud = await LocalCloud.start("local", settings);
  });
  afterAll(() => cloud?.stop());

  it("is a proxy's login, which machines of a new cluster know by their steps alone", async () => {
    await setProxy(proxyWith(passwords[0]!));

    asPlanned(await up());

    expect(await inSecret("HTTPS_PROXY")).toBe(proxyWith(passwords[0]!));
    expect((await controller()).spec.containers[0].env).toContainEqual({
      name: "HTTPS_PROXY",
      valueFrom: { secretKeyRef: { name: "azure-cloud-provider", key: "HTTPS_PROXY" } },
    });
  });

  it("is another login in place: steps run again, no machine is touched, what has read it starts again", async () => {
    const before = (await cloud.requests()).length;
    const { annotations } = (await controller()).metadata;
    await setProxy(proxyWith(passwords[1]!));

    asPlanned(await up());

    expect((await writesSince(before)).sort()).toEqual([
      "PUT extensions/bootstrap",
      "PUT extensions/bootstrap",
    ]);
    expect(await inSecret("HTTPS_PROXY")).toBe(proxyWith(passwords[1]!));
    expect((await controller()).metadata.annotations).not.toEqual(annotations);
    unchanged(await up());
  });

  it("is a service principal's, which takes the place of the control plane's identity, and touches no other machine", async () => {
    const before = (await cloud.requests()).length;
    await cloud.stack.configure({
      ...settings,
      servicePrincipalClientId: "3f1c7a52-6f0e-4b6f-9d0e-2f6f6f0f3c11",
    });
    await setProxy(proxyWith(passwords[1]!));
    await cloud.stack.setSecret("servicePrincipalClientSecret", principal);

    asPlanned(await up());

    const writes = await writesSince(before);
    expect(writes.filter((write) => /virtualMachines/.test(write))).toEqual([
      "PUT virtualMachines/zoned-local-cp-1",
    ]);
    expect(writes).toContain("DELETE userAssignedIdentities/zoned-local");
    expect(await inSecret("cloud-config")).toContain(principal);
  });

  it("is told to nobody: not to the state, the engine's output, the cluster's other objects", async () => {
    const objects = await cloud.kubectl(
      ...["get", "pods,deployments,daemonsets,configmaps,nodes", "--all-namespaces"],
      ...["--output", "json"],
    );
    const { checkpoint, config } = cloud.stack.place;
    const places = {
      state: readFileSync(checkpoint, "utf8"),
      config: readFileSync(config, "utf8"),
      output: said.join("\n"),
      requests: JSON.stringify(await cloud.requests()),
      objects,
    };

    expect(places.state).toContain("zoned-local-cp-1");
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const encoded = [
      ...passwords.flatMap((password) => [password, base64(proxyWith(password))]),
      ...[principal, base64(principal)],
    ];
    const telling = Object.entries(places).filter(([, text]) =>
      encoded.some((one) => text.includes(one)),
    );
    expect(telling.map(([place]) => place)).toEqual([]);
  });
});
