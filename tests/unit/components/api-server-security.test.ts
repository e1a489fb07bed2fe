import {
  securityFiles,
  securityFlags,
  securityVolumes,
} from "../../../components/api-server-security";

const flags = Object.keys;

it("gives the API server only files that its machine gets and its container sees", () => {
  const named = Object.entries(securityFlags({}))
    .filter(([flag]) => /(config|config-file|policy-file)$/.test(flag))
    .map(([, path]) => path);

  expect(named).toEqual(securityFiles.map(({ path }) => path));
  for (const path of [...named, securityFlags({})["audit-log-path"]!]) {
    expect(securityVolumes.some(({ mountPath }) => path.startsWith(`${mountPath}/`))).toBe(true);
  }
});

it("keeps the audit log out of a volume that the API server cannot write to", () => {
  const of = (path: string) => securityVolumes.find((one) => path.startsWith(`${one.mountPath}/`));

  expect(of(securityFlags({})["audit-log-path"]!)).not.toHaveProperty("readOnly");
});

it.each(["oidc-issuer-url", "anonymous-auth"])(
  "leaves it to an operator who says %s who may ask, as an API server would not start with both",
  (flag) => {
    expect(flags(securityFlags({}))).toContain("authentication-config");
    expect(flags(securityFlags({ [flag]: "a value" }))).not.toContain("authentication-config");
    expect(flags(securityFlags({ [flag]: "a value" }))).toContain("audit-policy-file");
  },
);
