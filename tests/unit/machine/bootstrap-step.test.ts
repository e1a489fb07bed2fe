import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ResourceGroup } from "@pulumi/azure-native/resources";
import * as pulumi from "@pulumi/pulumi";

import {
  bootstrapScript,
  bootstrapText,
  cloudInitText,
  parsePayload,
  Payload,
} from "../../../components/machine/payload";
import { bootstrapRequestTime } from "../../../components/machine/generation";
import type { BootstrapArgs } from "../../../components/machine/machine";
import { drainMark, excluded } from "../../../components/cluster/drain";
import * as power from "../../../components/machine/power";
import { checkout } from "../../../tools/shared/checkout";
import { awaitedBy, makeMachine, order } from "../../support/machines";
import { Recorder } from "../../support/record";
import { machine as plan, validSettings } from "../../support/sample";

describe("bootstrap step", () => {
  const now = "2026-03-01T10:00:00.000Z";
  const script = "#!/bin/sh\n# keys follow\n";

  const build = async (
    change: Partial<BootstrapArgs> = {},
    {
      size = plan.size,
      bootstrapRequestedAt = "then",
      sizeNow = size,
      drainedBefore,
      drainedFor = size,
      drained = "",
      deallocates = false,
      starts = false,
      stepRefusal,
      ran,
    }: {
      readonly size?: string;
      readonly bootstrapRequestedAt?: string;
      readonly sizeNow?: string;
      readonly drainedBefore?: string;
      readonly drainedFor?: string;
      readonly drained?: string;
      readonly deallocates?: boolean;
      readonly starts?: boolean;
      readonly stepRefusal?: string;
      /** Hash over what ran last. */
      readonly ran?: string;
    } = {},
  ) => {
    const happened: string[] = [];
    jest.spyOn(power, "switchPower").mockImplementation(async (action, { name }) => {
      happened.push(`${action} ${name}`);
    });
    const recorder = await Recorder.start({
      filledIn: {
        "azure-native:compute:VirtualMachine": ({ inputs }) => {
          happened.push(`PUT ${inputs.vmName}`);
          return { name: inputs.vmName };
        },
        "azure-native:compute:VirtualMachineExtension": ({ inputs }) => {
          happened.push(`PUT bootstrap of ${inputs.vmName}`);
          return {};
        },
        // What the engine answers where it was not to touch it.
        "pulumi-nodejs:dynamic/zoned:Drain": { size: drainedFor, drained },
      },
    });
    const machine = makeMachine(recorder, {
      plan: { ...plan, size },
      current: {
        size: sizeNow,
        drained: drainedBefore,
        bootstrap: { state: "Succeeded", script: ran },
      },
      ...{ deallocates, starts, stepRefusal, record: { ...order, bootstrapRequestedAt } },
    });
    const earlier = new ResourceGroup("something-earlier");
    machine.bootstrap({
      script: pulumi.output(script),
      after: [earlier],
      ...change,
    });
    const step = await recorder.only("azure-native:compute:VirtualMachineExtension");
    const vm = await recorder.only("azure-native:compute:VirtualMachine");
    return {
      ...{ ...step, machine, happened },
      osProfile: vm.inputs["osProfile"],
      vmSize: vm.inputs["hardwareProfile"].vmSize,
      vmTags: vm.inputs["tags"],
    };
  };

  it("is the machine's one custom script, which Azure's agent there runs", async () => {
    const { inputs, osProfile } = await build();

    expect(inputs).toMatchObject({
      vmName: "zoned-test-cp-1",
      vmExtensionName: "bootstrap",
      publisher: "Microsoft.Azure.Extensions",
      type: "CustomScript",
      typeHandlerVersion: "2.1",
      autoUpgradeMinorVersion: true,
    });
    expect(osProfile.linuxConfiguration.provisionVMAgent).toBe(true);
  });

  it("carries its script where Azure shows it to nobody, and Pulumi neither", async () => {
    const { inputs } = await build();

    expect(inputs.protectedSettings).toEqual({
      [pulumi.runtime.specialSigKey]: pulumi.runtime.specialSecretSig,
      value: { script: Buffer.from(script).toString("base64") },
    });
    expect(inputs).not.toHaveProperty("settings");
  });

  it("has longer than the agent gives a script", async () => {
    const { opts } = await build();

    expect(opts.customTimeouts).toEqual({ create: "95m", update: "95m" });
  });

  it("goes with its VM, and waits for what it is given to wait for", async () => {
    const step = await build();

    expect(step.opts.retainOnDelete).toBe(true);
    expect(step.opts.deletedWith).toBeUndefined();
    expect(await awaitedBy(step)).toEqual(["something-earlier"]);
  });

  it("is the same request as long as the same run is ordered, and another one after that", async () => {
    const tagOf = async (bootstrapRequestedAt: string) =>
      (await build({}, { bootstrapRequestedAt })).inputs.forceUpdateTag as string;

    expect(await tagOf("then")).toBe(await tagOf("then"));
    expect(await tagOf("now")).not.toBe(await tagOf("then"));
  });

  it("runs again after a resize, since that is a reboot and the next machine has to wait for its end", async () => {
    const before = await build({}, { drainedBefore: "then" });
    const after = await build({}, { size: "Standard_D4s_v5", sizeNow: plan.size, drained: "now" });

    expect(after.inputs.forceUpdateTag).not.toBe(before.inputs.forceUpdateTag);
  });

  it("is resized by each drain, also to the size that Pulumi's state already has", async () => {
    const before = await build({}, { drainedBefore: "then" });
    const after = await build({}, { sizeNow: "Standard_D4s_v5", drained: "now" });

    expect([before, after].map(({ vmTags }) => vmTags["zoned-drained"])).toEqual(["then", "now"]);
  });

  it("keeps its size and its step where --target leaves out the drain before a resize", async () => {
    const before = await build();
    const after = await build(
      {},
      { size: "Standard_D4s_v5", sizeNow: plan.size, drainedFor: plan.size },
    );

    expect(after.vmSize).toBe(plan.size);
    expect(after.inputs.forceUpdateTag).toBe(before.inputs.forceUpdateTag);
    expect((await build({}, { size: "Standard_D4s_v5" })).vmSize).toBe("Standard_D4s_v5");
  });

  it.each([
    ["is resized as it runs", {}, ["PUT", "PUT bootstrap of"]],
    [
      "is deallocated, resized and started",
      { deallocates: true, starts: true },
      ["deallocate", "PUT", "start", "PUT bootstrap of"],
    ],
    [
      "is resized while it is off, and started",
      { starts: true },
      ["PUT", "start", "PUT bootstrap of"],
    ],
    [
      "is not deallocated where --target leaves out its drain",
      { deallocates: true, starts: true, drainedFor: plan.size },
      ["PUT", "start", "PUT bootstrap of"],
    ],
  ])("is on a machine that %s before it", async (_, scene, does) => {
    const { happened } = await build(
      {},
      { size: "Standard_D2as_v5", sizeNow: plan.size, ...scene },
    );

    expect(happened).toEqual(does.map((one) => `${one} zoned-test-cp-1`));
  });

  it("stays as it is on a machine that is off and has run the same", async () => {
    const { inputs } = await build();
    const { "zoned-script": ran } = inputs["tags"] as Record<string, string>;

    const off = await build({}, { stepRefusal: "start it", ran });

    expect(off.inputs).toEqual(inputs);
    expect(off.opts.ignoreChanges).toContain("tags");
    expect((await build()).opts.ignoreChanges).toEqual([]);
  });

  it("says after which drain it ran", async () => {
    expect((await build({}, { drainedBefore: "then" })).inputs.tags["zoned-drained"]).toBe("then");
    expect((await build()).inputs.tags).not.toHaveProperty("zoned-drained");
  });

  it("tells the next update its run and the initial control plane", async () => {
    const remembered = { initialControlPlane: "the-initial-vm", encryptionKeys: "2 1" };
    expect((await build(remembered)).inputs.tags).toEqual({
      "zoned-bootstrap-requested-at": "then",
      "zoned-script": expect.stringMatching(/^[0-9a-f]{16}$/),
      "zoned-kubernetes": validSettings.kubernetesVersion,
      "zoned-configuration": "now",
      "zoned-encryption-keys": "2 1",
      "zoned-initial-control-plane": "the-initial-vm",
    });
    expect((await build()).inputs.tags).not.toHaveProperty("zoned-initial-control-plane");
    expect((await build()).inputs.tags).not.toHaveProperty("zoned-encryption-keys");
  });

  it.each([
    { step: "is new", bootstrap: undefined, run: now },
    { step: "bears no run", bootstrap: { state: "Succeeded" }, run: now },
    { step: "failed", bootstrap: { state: "Failed", requestedAt: "then" }, run: now },
    { step: "was canceled", bootstrap: { state: "Canceled", requestedAt: "then" }, run: now },
    { step: "succeeded", bootstrap: { state: "Succeeded", requestedAt: "then" }, run: "then" },
    {
      step: "whose end was not awaited",
      bootstrap: { state: "Updating", requestedAt: "then" },
      run: now,
    },
    {
      step: "has lost its tag",
      bootstrap: { state: "Succeeded" },
      remembered: "remembered",
      run: "remembered",
    },
    {
      step: "failed, whatever is remembered",
      bootstrap: { state: "Failed" },
      remembered: "remembered",
      run: now,
    },
  ])("orders run $run of a step that $step", ({ bootstrap, remembered, run }) => {
    expect(bootstrapRequestTime(bootstrap, remembered, now)).toBe(run);
  });
});

describe("payload", () => {
  const payload: Payload = {
    ...{ machine: "zoned-test-cp-1", role: "control-plane", nodeAddress: "172.16.1.4" },
    ...{ apiName: "zoned-test.westeurope.cloudapp.azure.com", apiPort: 6443 },
    ...{ kubernetesVersion: "1.2.3", configuration: "now", tasks: [], drainMinutes: 15 },
    ...{ maxPods: 110, room: "as before", modules: ["ip_vs"] },
    initialControlPlane: "8a1c7f0e-9f0d-4a6c-9d75-0f2f3c0f5a11",
    files: [
      {
        path: "/etc/zoned/a",
        mode: "0600",
        content: "text with \"quotes\", 'others',\n\r\nlines and ü\n",
      },
    ],
  };

  it("ships all of bootstrap.sh as one file, and its payload after it", () => {
    const shipped = bootstrapText();

    expect(bootstrapScript(payload).startsWith(`${shipped}{`)).toBe(true);
    expect(shipped.endsWith("\nexit\n#--- payload ---\n")).toBe(true);
    expect(shipped).not.toContain(`. "$parts/`);
    for (const part of readdirSync(join(checkout, "cloud-init/bootstrap"))) {
      expect(shipped).toContain(cloudInitText(`bootstrap/${part}`));
    }
  });

  it("gives back the payload that went in", () => {
    expect(parsePayload(bootstrapScript(payload))).toEqual(payload);
  });

  it("keeps the payload on one line, whatever its files hold, since Azure's agent changes line ends", () => {
    const [last, document] = bootstrapScript(payload).split("\n").reverse();

    expect(last).toBe("");
    expect(JSON.parse(document!)).toEqual(payload);
    expect(bootstrapScript(payload)).not.toContain("\r");
  });

  it("refuses a script that is none of its own", () => {
    expect(() => parsePayload("#!/bin/sh\necho hello\n")).toThrow(/has no line "#--- payload ---"/);
  });

  it("does not quote a payload that is cut off, since it holds keys", () => {
    const cut = '#!/bin/sh\n#--- payload ---\n{"ca.key": "sec';

    expect(() => parsePayload(cut)).toThrow(/is not JSON$/);
  });

  it("refuses more than Azure takes, which it measures in base64, and names the largest file and the settings, whose mistake it is", () => {
    const large = {
      path: "/etc/zoned/patches/etcd.yaml",
      mode: "0600",
      content: "x".repeat(200_000 - bootstrapScript(payload).length),
    };

    expect(() => bootstrapScript({ ...payload, files: [...payload.files, large] })).toThrow(
      expect.objectContaining({
        __pulumiRunError: true,
        message: expect.stringMatching(
          /zoned-test-cp-1 is \d+ bytes in base64, and Azure takes at most 262144.*etcd\.yaml with \d+ characters: .* kubeadm\.patches, .* entra\.ca$/,
        ),
      }),
    );
  });

  it("knows the marks that a drain leaves on a Node", () => {
    expect(bootstrapText()).toContain(`drain_mark=${drainMark}\nexcluded=${excluded}\n`);
  });
});
