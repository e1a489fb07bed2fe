import type { Payload } from "../../../../../../components/machine/payload";
import {
  checkFirstBoot,
  fileOf,
  payloadOf,
} from "../../../../machines/simulated/bootstrap/payload";
import { vmOf } from "../../../support/simulated/fixture";

const payload: Payload = {
  machine: "demo-cp-1",
  role: "control-plane",
  apiName: "demo.example.org",
  apiPort: 6443,
  kubernetesVersion: "1.36.3",
  configuration: "now",
  tasks: [],
  drainMinutes: 15,
  nodeAddress: "172.16.1.4",
  modules: ["ip_vs"],
  files: [{ path: "/etc/zoned/a", mode: "0600", content: "b\n#--- payload ---\n" }],
};
const script = (text: string) => `#!/bin/bash\nexit\n#--- payload ---\n${text}\n`;
const vm = vmOf("demo-cp-1", "1", "172.16.1.4");
const encoded = (text: string) => Buffer.from(text).toString("base64");

it("finds the payload behind the first marker line", () => {
  expect(payloadOf(script(JSON.stringify(payload)))).toEqual(payload);
});

it.each([
  { flaw: "no marker", text: "#!/bin/bash\necho\n", says: /no line "#--- payload ---"/ },
  { flaw: "half a document", text: script('{"ca.key": "sec'), says: /is not JSON$/ },
  { flaw: "fields missing", text: script('{"machine":"a"}'), says: /lacks role, apiName/ },
])("refuses a script with $flaw", ({ text, says }) => {
  expect(() => payloadOf(text)).toThrow(says);
});

it("names the files that came when one did not", () => {
  expect(() => fileOf(payload, "/etc/zoned/c")).toThrow(
    "brings no /etc/zoned/c; it brings /etc/zoned/a",
  );
});

it("takes customData that runs the first boot", () => {
  expect(() => checkFirstBoot(vm, payload)).not.toThrow();
});

it("takes customData without one, where the payload brings it", () => {
  const customData = encoded("#cloud-config\n{}\n");
  const files = [{ path: "/opt/zoned/first-boot.sh", mode: "0700", content: "#!/bin/sh\n" }];

  expect(() => checkFirstBoot({ ...vm, customData }, { ...payload, files })).not.toThrow();
});

it.each([
  { flaw: "none at all", customData: undefined, says: /first line is "#cloud-config"/ },
  { flaw: "a script", customData: encoded("#!/bin/sh\n"), says: /begins with "#!\/bin\/sh"/ },
  { flaw: "no file", customData: encoded("#cloud-config\n{}\n"), says: /writes no \/opt/ },
  {
    flaw: "a file that nobody runs",
    customData: encoded(
      '#cloud-config\n{"write_files":[{"path":"/opt/zoned/first-boot.sh","content":"x"}]}\n',
    ),
    says: /runcmd does not run it/,
  },
])("refuses customData with $flaw", ({ customData, says }) => {
  expect(() => checkFirstBoot({ ...vm, customData }, payload)).toThrow(says);
});
