import { prepareHost } from "../../../machines/qemu/prepare";
import { Progress } from "../../../../shared/progress";

afterEach(() => jest.restoreAllMocks());

it("everything that a host lacks for real machines is named at once", async () => {
  jest.spyOn(process, "getuid").mockReturnValue(0);
  jest.replaceProperty(process, "env", { ...process.env, PATH: "/nowhere" });
  const options = { progress: new Progress(), signal: AbortSignal.timeout(10_000) };

  await expect(prepareHost(options)).rejects.toThrow(
    /mmdebstrap, .*gpg, .* not installed: sudo apt-get install .* mmdebstrap .* gnupg/,
  );
});
