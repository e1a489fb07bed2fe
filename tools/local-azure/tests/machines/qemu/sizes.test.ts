import {
  checkFits,
  outnumberHostCores,
  mostCores,
  neededMib,
  shapeOf,
} from "../../../machines/qemu/sizes";

const three = ["cp-1", "workers-1", "workers-2"].map((name) => ({ name, size: "Standard_B2s" }));

test("memory is scaled and processors are not, but for what the host has", () => {
  expect(shapeOf("Standard_B2s", 0.75, 2)).toEqual({ cores: 2, memoryMib: 3072 });
  expect(shapeOf("Standard_D4s_v5", 1, 2)).toEqual({ cores: 2, memoryMib: 16384 });
  expect(shapeOf("Standard_D4s_v5", 1, 16)).toEqual({ cores: 4, memoryMib: 16384 });
});

test("a host with one processor still gives the two that kubeadm wants", () => {
  expect(mostCores(1, true, false)).toBe(2);
});

test("of emulated processors a machine has one, unless others wait for it", () => {
  expect(shapeOf("Standard_B2s", 0.75, mostCores(16, false, false)).cores).toBe(1);
  expect(shapeOf("Standard_B2s", 0.75, mostCores(16, true, false)).cores).toBe(2);
});

test("control planes that outnumber the host's processors have one each, if kubeadm does not mind", () => {
  expect(outnumberHostCores(3, 2, ["NumCPU"])).toBe(true);
  expect(outnumberHostCores(3, 2, [])).toBe(false);
  expect(outnumberHostCores(3, 4, ["NumCPU"])).toBe(false);
  expect(mostCores(2, true, true)).toBe(1);
});

test("machines that just fit are admitted, and one MiB less refuses them", () => {
  const needed = neededMib(three, 0.75, "tcg");
  expect(needed).toBe(3 * (3072 + 2176));
  expect(() => checkFits(three, 0.75, "tcg", needed)).not.toThrow();
  expect(() => checkFits(three, 0.75, "tcg", needed - 1)).toThrow("--scale");
});

test("a refusal shows the arithmetic and a scale that would do", () => {
  expect(() => checkFits(three, 0.75, "tcg", 12288)).toThrow(
    "these machines need 15.4 GiB of memory: 3 × Standard_B2s of 3.0 GiB (at --scale 0.75), and " +
      "2.1 GiB for each one's QEMU; this host has 12.0 GiB to give: --scale 0.45",
  );
  const advised = /--scale (0\.\d+) may do/.exec(
    messageOf(() => checkFits(three, 0.75, "tcg", 12288)),
  )?.[1];
  expect(() => checkFits(three, Number(advised), "tcg", 12288)).not.toThrow();
});

test("no room for translated code is asked for where KVM runs the processors", () => {
  expect(neededMib(three, 0.75, "kvm")).toBe(3 * (3072 + 128));
});

test("no scale is advised where none would do", () => {
  expect(() => checkFits(three, 0.75, "tcg", 2048)).toThrow("take smaller sizes or fewer machines");
});

function messageOf(work: () => void): string {
  try {
    work();
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}
