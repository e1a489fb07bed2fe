import { registryCredentialFiles } from "../../../../components/kubeadm/registries";
import type { Payload } from "../../../../components/machine/payload";
import {
  bootstrap,
  machineIn,
  programs,
  ship,
  worker,
} from "../../../support/bootstrapped-machine";

const path = "/var/lib/kubelet/config.json";

const pullingBy = (password: string): Payload => ({
  ...worker,
  tasks: ["registry-credentials"],
  files: [
    ...worker.files,
    ...registryCredentialFiles({
      registryCredentials: { "ghcr.io": { username: "robot", password } },
    }),
  ],
});

it("credentials of registries are there before the kubelet, change under it, and go with the setting", async () => {
  const machine = machineIn({}, pullingBy("first"));
  machine.program(
    "kubeadm",
    `cp "$root${path}" "$root/at-join"
${programs.kubeadm}`,
  );

  expect(await bootstrap(machine)).toMatchObject({ code: 0 });
  expect(machine.read("/at-join")).toContain("first");

  machine.forgetCalls();
  ship(machine, pullingBy("second"));
  expect(await bootstrap(machine)).toMatchObject({ code: 0 });
  expect(machine.read(path)).toContain("second");
  expect(machine.callsOf("systemctl").filter((call) => call.includes("kubelet"))).toEqual([]);

  ship(machine, worker);
  expect(await bootstrap(machine)).toMatchObject({ code: 0 });
  expect(machine.has(path)).toBe(false);
});

it("credentials that somebody else has put there stay", async () => {
  const machine = machineIn({}, worker);
  machine.write(path, "theirs");

  await bootstrap(machine);

  expect(machine.read(path)).toBe("theirs");
});
