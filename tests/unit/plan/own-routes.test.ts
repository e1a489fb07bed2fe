import { ownRoutesWarnings } from "../../../components/plan/own-routes";
import { validSettings } from "../../support/sample";

const settings = { ...validSettings, egress: "none" } as const;

it("says where routes have to lead the machines that an update makes, and how one is made", () => {
  const [warning, ...more] = ownRoutesWarnings(settings, true);

  expect(more).toEqual([]);
  for (const host of ["management.azure.com", "login.microsoftonline.com", "registry.k8s.io"]) {
    expect(warning).toContain(host);
  }
  expect(warning).toContain("--route-table-name zoned-test-rt");
});

it("names a mirror alone where packages and images come from it", () => {
  const [warning] = ownRoutesWarnings({ ...settings, mirror: "https://mirror.example/k8s" }, true);

  expect(warning).toContain("mirror.example;");
  expect(warning).not.toContain("registry.k8s.io");
});

it("names a proxy alone, which machines ask for all else", () => {
  const https = "http://proxy.example:3128";
  const httpProxy = { http: https, https, noProxy: [], ca: "" };
  const [warning] = ownRoutesWarnings({ ...settings, httpProxy }, true);

  expect(warning).toContain(`must lead them to ${https};`);
  expect(warning).not.toContain("management.azure.com");
});

it("says nothing where no machine is made, or this program makes the way out", () => {
  expect(ownRoutesWarnings(settings, false)).toEqual([]);
  expect(ownRoutesWarnings(validSettings, true)).toEqual([]);
});
