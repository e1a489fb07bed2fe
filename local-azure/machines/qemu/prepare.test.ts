import { Progress } from "../../progress";
import { prepareHost } from "./prepare";

afterEach(() => jest.restoreAllMocks());

const onLinux = process.platform === "linux" && process.arch === "x64" ? test : test.skip;

onLinux("everything that a host lacks for real machines is named at once", async () => {
  jest.spyOn(process, "getuid").mockReturnValue(0);
  jest.replaceProperty(process, "env", { ...process.env, PATH: "/nowhere" });
  const options = { progress: new Progress(), signal: AbortSignal.timeout(10_000) };

  await expect(prepareHost(options)).rejects.toThrow(
    /mmdebstrap, .*gpg, .* not installed: sudo apt-get install .* mmdebstrap .* gnupg/,
  );
});
