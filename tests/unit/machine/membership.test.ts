import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as pulumi from "@pulumi/pulumi";
import { parse } from "yaml";

import type { BootstrapState, MachineState } from "../../../components/azure/state";
import * as leaving from "../../../components/cluster/leave";
import { Drain } from "../../../components/machine/membership";
import { switchPower } from "../../../components/machine/power";
import { checkout } from "../../../tools/shared/checkout";
import { serve } from "../../support/listen";
import { awaitedBy, buildMachines, existing, makeMachine } from "../../support/machines";
import { providerOf, Recorded, Recorder } from "../../support/record";
import { machine, validSettings } from "../../support/sample";

describe("membership", () => {
  const names = ["cp-1", "cp-2", "cp-3"].map((name) => `zoned-test-${name}`);
  const type = "pulumi-nodejs:dynamic/zoned:Membership";
  const drainType = "pulumi-nodejs:dynamic/zoned:Drain";

  let memberships: readonly Recorded[];
  let drains: readonly Recorded[];
  let resourceGroup: unknown;

  beforeAll(async () => {
    const built = await buildMachines({ initialization: existing, existing: names });
    memberships = await built.recorder.of(type);
    drains = await built.recorder.of(drainType);
    resourceGroup = built.resourceGroup.own;
  });

  const same: MachineState = { size: "Standard_D2s_v5", bootstrap: { state: "Succeeded" } };
  const larger: MachineState = { ...same, size: "Standard_D4s_v5" };

  it("is there for every machine, knows its VM, and ends with the resource group", () => {
    expect(memberships.map(({ inputs }) => [inputs.machine, inputs.vmId])).toEqual(
      expect.arrayContaining(names.map((name) => [name, `id of ${name}-vm`])),
    );
    expect(memberships).toHaveLength(6);
    for (const { opts } of [...memberships, ...drains]) {
      expect(opts.deletedWith).toBe(resourceGroup);
    }
  });

  it("keeps the administrator's key secret", () => {
    for (const { inputs } of [...memberships, ...drains]) {
      expect(Object.keys(inputs.kubeconfig)).toContain("value");
      expect(JSON.stringify({ ...inputs, kubeconfig: "" })).not.toMatch(/private/);
    }
  });

  it.each([
    ["of another size", { ...larger, drained: "before" }, true, undefined, undefined],
    ["of another size, and off", { ...larger, power: "stopped" }, true, undefined, true],
    [
      "of another size that has not joined",
      { ...larger, bootstrap: undefined },
      true,
      undefined,
      true,
    ],
    ["of the same, and off", { ...same, power: "stopped" }, undefined, "", undefined],
    [
      "of the same",
      { ...same, size: "STANDARD_D2S_V5", drained: "before" },
      undefined,
      "before",
      undefined,
    ],
    ["of the same that was never drained", same, undefined, "", undefined],
    ["that is gone", undefined, undefined, "", undefined],
  ])(
    "drains a machine %s for a restart, and a preview knows when it was last drained unless it is to be now",
    async (_, now, isRestarted, lastDrained, isEmpty) => {
      const recorder = await Recorder.start({ preview: true });
      const member = { machine: "one", role: "worker", initialization: "1" } as const;
      const args = { ...member, size: "Standard_D2s_v5", kubeconfig: "k" };

      const upgrade = { kubernetesVersion: "1.37.9" };
      const drain = new Drain(args, now, true, upgrade, { transformations: [recorder.watch] });

      const { inputs } = await recorder.only(drainType);
      expect(inputs.resizes).toBe(isRestarted);
      expect(inputs.isEmpty).toBe(isEmpty);
      // Of a machine that is off, or has never joined, nothing is upgraded.
      const isMember = now?.bootstrap !== undefined && !("power" in now);
      expect(inputs.upgrade).toEqual(isMember ? upgrade : undefined);
      const known = await (drain.lastDrained as any).promise(true);
      expect(known).toBe(lastDrained);
    },
  );

  it.each([
    ["nothing before there is a cluster", undefined, true],
    ["a member", existing, undefined],
  ])("drains %s for another size", async (_, initialization, isEmpty) => {
    const settings = { controlPlaneSize: "Standard_D4s_v5" };
    const { recorder } = await buildMachines({ existing: names, initialization, settings });

    const resized = (await recorder.of(drainType)).filter(({ inputs }) => inputs.resizes);

    expect(resized.map(({ inputs }) => [inputs.machine, inputs.isEmpty])).toEqual(
      names.map((name) => [name, isEmpty]),
    );
  });

  const step = {
    state: "Succeeded",
    kubernetesVersion: validSettings.kubernetesVersion,
    configuration: "now",
  };
  it.each<[string, { bootstrap?: BootstrapState; retained?: boolean }, object | undefined]>([
    ["that stays as it is", { bootstrap: step }, undefined],
    ["of another version", { bootstrap: { ...step, kubernetesVersion: "1.0.0" } }, {}],
    [
      "of another configuration alone",
      { bootstrap: { ...step, configuration: "before" } },
      undefined,
    ],
    ["whose step has failed", { bootstrap: { ...step, state: "Failed" } }, { isHalfDone: true }],
    [
      "that is made anew",
      { bootstrap: { ...step, kubernetesVersion: "1.0.0" }, retained: false },
      undefined,
    ],
  ])("drains a machine %s for its step", async (_, { bootstrap, retained = true }, upgrade) => {
    const recorder = await Recorder.start();
    makeMachine(recorder, { retained, current: { size: machine.size, bootstrap } });

    const { inputs } = await recorder.only(drainType);

    const { kubernetesVersion } = validSettings;
    expect(inputs.upgrade).toEqual(upgrade && { kubernetesVersion, ...upgrade });
  });

  it("ends for control planes one after another, from the highest number", async () => {
    const waits = await Promise.all(
      memberships
        .filter(({ inputs }) => inputs.role === "control-plane")
        .map(async (one) => [
          one.inputs.machine,
          (await awaitedBy(one)).filter((name) => name.endsWith("-membership")),
        ]),
    );

    expect(Object.fromEntries(waits)).toEqual({
      [names[0]!]: [],
      [names[1]!]: [`${names[0]}-membership`],
      [names[2]!]: [`${names[0]}-membership`, `${names[1]}-membership`],
    });
  });

  it("begins when the machine has joined", async () => {
    for (const one of memberships) {
      expect(await awaitedBy(one)).toContain(`${one.inputs.machine}-bootstrap`);
    }
  });

  describe("what the engine runs", () => {
    const kubeconfig = JSON.stringify({ clusters: [{ name: "c", cluster: { server: "s" } }] });
    const news = { machine: "one", vmId: "a", kubeconfig };

    it("is replaced with its VM and with nothing else", async () => {
      const { diff } = providerOf(memberships[0]!);

      expect(await diff!("one", news, news)).toMatchObject({ changes: false, replaces: [] });
      expect(await diff!("one", news, { ...news, vmId: "b" })).toMatchObject({
        changes: true,
        replaces: ["vmId"],
        deleteBeforeReplace: true,
      });
      expect(await diff!("one", news, { ...news, kubeconfig: "l" })).toMatchObject({
        changes: true,
        replaces: [],
      });
    });

    it("keeps all inputs, since a deletion is given nothing else", async () => {
      const { create } = providerOf(memberships[0]!);

      expect(await create!(news)).toEqual({ id: "one", outs: news });
    });

    /** What it does to the cluster with these settings, instead of doing it. */
    async function watched(resource: Recorded, settings: Record<string, string> = {}) {
      const provider = providerOf(resource);
      await provider["configure"]!({ config: { get: (name: string) => settings[name] } });
      const done: [string, unknown][] = [];
      for (const name of ["leave", "drainForResize", "drainForUpgrade"] as const) {
        jest.spyOn(leaving, name).mockImplementation(async (_: unknown, ...given: unknown[]) => {
          done.push([name, given.at(-1)]);
        });
      }
      return { provider, done };
    }
    afterEach(() => jest.restoreAllMocks());

    const olds = { machine: "one", kubeconfig: "k", size: "small", resizes: true, drained: "then" };

    it("drains for a restart alone", async () => {
      const { provider, done } = await watched(drains[0]!);
      const other = { machine: "one", kubeconfig: "l", size: "large", resizes: undefined };

      expect(await provider["diff"]!("one", olds, { ...olds, size: "large" })).toEqual({
        changes: true,
      });
      expect(await provider["update"]!("one", olds, other)).toEqual({
        outs: { ...other, drained: "then" },
      });
      expect(done).toEqual([]);
      const { outs } = await provider["update"]!("one", olds, { ...other, resizes: true });
      expect(done.map(([name]) => name)).toEqual(["drainForResize"]);
      expect(outs.drained).toMatch(/^20\d\d-/);
    });

    it("drains again where it was drained for a size that the machine did not get, and else changes nothing", async () => {
      const { provider, done } = await watched(drains[0]!);
      const { drained: _, ...news } = olds;

      expect(await provider["diff"]!("one", olds, { ...news, resizes: undefined })).toEqual({
        changes: false,
      });
      expect(await provider["diff"]!("one", olds, news)).toEqual({ changes: true });
      await provider["update"]!("one", olds, news);
      expect(done.map(([name]) => name)).toEqual(["drainForResize"]);
    });

    it("drains no machine that is off, and counts it as drained all the same", async () => {
      const { provider, done } = await watched(drains[0]!);
      const news = { machine: "one", kubeconfig: "k", size: "large", resizes: true, isEmpty: true };

      const { outs } = await provider["update"]!("one", olds, news);

      expect(done).toEqual([]);
      expect(outs.drained).toMatch(/^20\d\d-/);
      expect(
        await provider["diff"]!("one", outs, {
          ...news,
          ...{ resizes: undefined, isEmpty: undefined },
        }),
      ).toEqual({
        changes: false,
      });
    });

    it.each(["create", "update"])(
      "drains a member for what its step makes of it, by %s, and as often as that is to come",
      async (how) => {
        const { provider, done } = await watched(drains[0]!);
        const upgrade = { kubernetesVersion: "1.37.9" };
        const inputs = { machine: "one", kubeconfig: "k", size: "large", resizes: undefined };
        const news = { ...inputs, upgrade };

        const { outs } =
          how === "create"
            ? await provider["create"]!(news)
            : await provider["update"]!("one", { ...inputs, drained: "then" }, news);

        expect(done.map(([name]) => name)).toEqual(["drainForUpgrade"]);
        const [, given] = jest.mocked(leaving.drainForUpgrade).mock.calls[0]!;
        expect(given).toEqual(upgrade);
        // Azure restarts nothing for it.
        expect(outs).toEqual({ ...news, drained: how === "create" ? "" : "then" });
        expect(await provider["diff"]!("one", outs, news)).toEqual({ changes: true });
        const same = { ...news, upgrade: undefined };
        expect(await provider["diff"]!("one", outs, same)).toEqual({ changes: false });
      },
    );

    it("drains once where a machine gets another size and another version", async () => {
      const { provider, done } = await watched(drains[0]!);
      const upgrade = { kubernetesVersion: "1.37.9" };

      await provider["update"]!("one", olds, { ...olds, upgrade });

      expect(done.map(([name]) => name)).toEqual(["drainForResize"]);
    });

    it("does nothing to a machine when its membership is updated", async () => {
      const { provider, done } = await watched(memberships[0]!);
      const other = { ...news, kubeconfig: "l" };

      expect(await provider["update"]!("one", news, other)).toEqual({ outs: other });
      expect(done).toEqual([]);
    });

    it("goes by the settings of this moment, and by Pulumi.yaml's where there are none", async () => {
      const limitsBy = async (settings: Record<string, string>) => {
        const { provider, done } = await watched(memberships[0]!, settings);
        await provider["delete"]!("one", { ...news, initialization: "1-then" });
        return done[0]![1];
      };
      const { config } = parse(readFileSync(join(checkout, "Pulumi.yaml"), "utf8"));
      const drainMinutes = config.drainMinutes.default;

      expect(await limitsBy({})).toEqual({
        drainMinutes,
        dataLossAccepted: false,
        skipIfUnreachable: false,
        savesEtcd: false,
      });
      // Pulumi.yaml's default is an object without anything in it.
      expect(await limitsBy({ etcdBackups: "{}" })).toMatchObject({ savesEtcd: false });
      expect(await limitsBy({ etcdBackups: '{"every":"1h"}' })).toMatchObject({ savesEtcd: true });
      expect(await limitsBy({ drainMinutes: "7" })).toMatchObject({ drainMinutes: 7 });
      for (const [skipHealthCheckUntil, skipIfUnreachable] of [
        ["20200101T000000Z", false],
        ["29990101T000000Z", true],
      ] as const) {
        expect(await limitsBy({ skipHealthCheckUntil })).toMatchObject({ skipIfUnreachable });
      }
    });

    it("lets a machine go by the proxy of this moment, whatever its kubeconfig was made with", async () => {
      const proxyOf = async (before: string | undefined, apiProxy: string | undefined) => {
        const { provider } = await watched(memberships[0]!, apiProxy ? { apiProxy } : {});
        const cluster = { server: "s", "proxy-url": before };
        const old = JSON.stringify({ clusters: [{ name: "c", cluster }] });
        await provider["delete"]!("one", { ...news, kubeconfig: old, initialization: "1-then" });
        const [member] = jest.mocked(leaving.leave).mock.calls.at(-1)!;
        return JSON.parse(member.kubeconfig).clusters[0].cluster["proxy-url"];
      };

      expect(await proxyOf("http://old:1", "http://new:2")).toBe("http://new:2");
      expect(await proxyOf("http://old:1", undefined)).toBeUndefined();
      expect(await proxyOf(undefined, "http://new:2")).toBe("http://new:2");
    });

    it("asks the cluster all the same where restoreFrom was left behind, and lets only control planes go where nobody answers", async () => {
      const limitsOf = async (role: string) => {
        const { provider, done } = await watched(memberships[0]!, { restoreFrom: "latest" });
        await provider["delete"]!("one", { ...news, role, initialization: "1-then" });
        return done[0]![1];
      };

      expect(await limitsOf("control-plane")).toMatchObject({
        dataLossAccepted: false,
        skipIfUnreachable: true,
      });
      expect(await limitsOf("worker")).toMatchObject({
        dataLossAccepted: false,
        skipIfUnreachable: false,
      });
    });

    it("gives workers up with the cluster that was restored since they were made", async () => {
      const dataLossAccepted = async (role: string, initialization: string) => {
        const { provider, done } = await watched(memberships[0]!, { reinitialize: "1-then-later" });
        await provider["delete"]!("one", { ...news, role, initialization });
        return (done[0]![1] as leaving.Limits).dataLossAccepted;
      };

      expect(await dataLossAccepted("worker", "1-then")).toBe(true);
      expect(await dataLossAccepted("worker", "2-other")).toBe(false);
      expect(await dataLossAccepted("control-plane", "1-then-later")).toBe(true);
      expect(await dataLossAccepted("control-plane", "1-then")).toBe(false);
    });

    it("does nothing in a cluster that is given up, whether or not there is an API", async () => {
      const provider = providerOf(memberships[0]!);
      const settings: Record<string, string> = { reinitialize: "1-then" };
      await provider["configure"]!({ config: { get: (name: string) => settings[name] } });
      const props = { ...news, role: "worker" };

      await provider["delete"]!("one", { ...props, initialization: "1-then" });
      await expect(
        provider["delete"]!("one", { ...props, initialization: "2-later" }),
      ).rejects.toMatchObject({ stack: "" });
    });
  });
});

describe("power", () => {
  interface Scene {
    readonly preview?: boolean;
    /** How Azure's operation ends. */
    readonly ends?: object;
  }

  /** What Azure is asked to do, and why that has failed, if it has. */
  async function start({ preview = false, ends = { status: "Succeeded" } }: Scene = {}) {
    const asked: string[] = [];
    const answers = [{ status: "InProgress" }, ends];
    const azure = await serve(({ method, url = "" }, response) => {
      const { pathname } = new URL(url, "http://localhost");
      if (pathname === "/subscriptions") {
        return response.end(
          JSON.stringify({ value: [{ subscriptionId: "the-subscription", tenantId: "t" }] }),
        );
      }
      asked.push(`${method} ${pathname}`);
      if (method !== "POST") return response.end(JSON.stringify(answers.shift()));
      const operation = `${azure}/operation`;
      return response
        .writeHead(202, { "azure-asyncoperation": operation, "retry-after": "0" })
        .end();
    });
    await Recorder.start({
      preview,
      calls: { "azure-native:authorization:getClientToken": () => ({ token: "local" }) },
    });
    const log = jest.spyOn(pulumi.log, "info").mockImplementation(async () => undefined);
    const settings = { ...validSettings, resourceManagerEndpoint: azure };
    const error = await switchPower("start", machine, settings).catch(String);
    log.mockRestore();
    return { asked, error };
  }

  it("starts a machine, and waits until Azure has done so", async () => {
    expect(await start()).toEqual({
      asked: [
        `POST /subscriptions/the-subscription/resourceGroups/zoned-test/providers/Microsoft.Compute/virtualMachines/${machine.name}/start`,
        "GET /operation",
        "GET /operation",
      ],
      error: undefined,
    });
  });

  it("touches no machine in a preview", async () => {
    expect(await start({ preview: true })).toEqual({ asked: [], error: undefined });
  });

  it("fails with Azure's reason, and with what it means for this machine", async () => {
    const reason = { code: "AllocationFailed", message: "there is no room" };

    const { error } = await start({ ends: { status: "Failed", error: reason } });

    expect(error).toMatch(/AllocationFailed: there is no room\n/);
    expect(error).toContain(machine.name);
  });
});
