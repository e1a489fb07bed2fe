import { checkFits, mostCores, neededMib, shapeOf } from "./sizes";

const three = ["cp-1", "workers-1", "workers-2"].map((name) => ({ name, size: "Standard_B2s" }));

test("memory is scaled and processors are not, but for what the host has", () => {
  expect(shapeOf("Standard_B2s", 0.75, 2)).toEqual({ cores: 2, memoryMib: 3072 });
  expect(shapeOf("Standard_D4s_v5", 1, 2)).toEqual({ cores: 2, memoryMib: 16384 });
  expect(shapeOf("Standard_D4s_v5", 1, 16)).toEqual({ cores: 4, memoryMib: 16384 });
});

test("a host with one processor still gives the two that kubeadm wants", () => {
  expect(mostCores(1, false)).toBe(2);
});

test("of played processors a machine has one, unless others wait for it", () => {
  expect(shapeOf("Standard_B2s", 0.75, mostCores(16, true)).cores).toBe(1);
  expect(shapeOf("Standard_B2s", 0.75, mostCores(16, false)).cores).toBe(2);
});

test("machines that just fit are admitted, and one MiB less refuses them", () => {
  const needed = neededMib(three, 0.75);
  expect(needed).toBe(3 * (3072 + 1152));
  expect(() => checkFits(three, 0.75, needed)).not.toThrow();
  expect(() => checkFits(three, 0.75, needed - 1)).toThrow("--scale");
});

test("a refusal shows the arithmetic and a scale that would do", () => {
  expect(() => checkFits(three, 0.75, 9216)).toThrow(
    "these machines need 12.4 GiB of memory: 3 × Standard_B2s of 3.0 GiB (at --scale 0.75), and " +
      "1.1 GiB for each one's QEMU; this host has 9.0 GiB to give: --scale 0.45",
  );
  const advised = /--scale (0\.\d+) may do/.exec(
    messageOf(() => checkFits(three, 0.75, 9216)),
  )?.[1];
  expect(() => checkFits(three, Number(advised), 9216)).not.toThrow();
});

test("no scale is advised where none would do", () => {
  expect(() => checkFits(three, 0.75, 2048)).toThrow("take smaller sizes or fewer machines");
});

function messageOf(work: () => void): string {
  try {
    work();
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}
