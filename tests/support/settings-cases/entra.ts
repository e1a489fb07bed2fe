import type { Entra } from "../../../components/settings/settings";
import type { Cases } from "../stack";
import { proxyCa } from "./network";

export const tenant = "8d1f2a34-5b6c-4d7e-8f90-a1b2c3d4e5f6";
export const application = "1c2d3e4f-5061-4728-939a-abbccddeeff0";
const group = "a0b1c2d3-e4f5-4061-8273-849506a7b8c9";

/** People of a tenant, as the program has read them. */
export const people: Entra = {
  ...{ tenant, application, admins: [group], issuer: "" },
  ...{ usernameClaim: "", groupsClaim: "", ca: "" },
};

const entra = { tenant, application, admins: [group] };
const other = { issuer: "https://login.example.org", application: "kubernetes" };
const proxy = "http://proxy.example:3128";
const withLogin = "http://me:hush@proxy.example:3128";

export const entraCases: Cases = {
  refused: [
    [{ entra: tenant }, "expected values by name"],
    [{ entra: { ...entra, groups: "x" } }, "usernameClaim, groupsClaim"],
    [{ entra: { ...entra, admins: group } }, "entra.admins is"],
    [{ entra: { application } }, "entra.tenant is not set"],
    [
      { entra: { ...entra, tenant: "example.onmicrosoft.com" } },
      "the tenant's id, since tokens name the tenant by it",
    ],
    [
      { entra: { ...entra, tenant: tenant.toUpperCase() } },
      `(pulumi config set --path entra.tenant ${tenant})`,
    ],
    [{ entra: { tenant } }, "entra.application is not set"],
    [{ entra: { ...entra, admins: [group, "admins"] } }, "entra.admins[1] is"],
    [{ entra: { ...entra, usernameClaim: "upn" } }, "claims and certificates are"],
    [{ entra: { ...entra, issuer: other.issuer } }, "one of the two, since people"],
    [{ entra: { ...other, issuer: "http://login.example.org" } }, "the https address"],
    [{ entra: { ...other, issuer: "https://dex.auth.svc" } }, "in DNS outside the cluster"],
    [
      {
        entra: { ...other, issuer: "https://accounts.example.org" },
        kubeadm: {
          apiServerExtraArgs: { "service-account-issuer": "https://accounts.example.org" },
        },
      },
      "not the one of service accounts",
    ],
    [{ entra: { issuer: other.issuer } }, "tokens have as aud"],
    [{ entra: { ...other, ca: "x" } }, "certificates as PEM"],
    [
      {
        entra,
        kubeadm: {
          apiServerExtraArgs: { "oidc-issuer-url": other.issuer, "oidc-client-id": "kubernetes" },
        },
      },
      "an API server does not start with both",
    ],
  ],
  accepted: [
    ["people of a tenant", { entra }],
    ["people of whom nobody is an administrator", { entra: { tenant, application } }],
    ["people of a tenant behind a proxy", { entra, httpProxy: { https: proxy } }],
    [
      "people of another issuer",
      { entra: { ...other, admins: ["admins"], usernameClaim: "email", groupsClaim: "roles" } },
    ],
    ["another issuer with a CA of its own", { entra: { ...other, ca: proxyCa } }],
  ],
};

/** Beside a proxy that wants a login, which is a secret. */
export const entraBesideLogin: Cases = {
  refused: [
    [
      { entra, httpProxy: { https: withLogin, noProxy: ["10.0.0.0/8"] } },
      "login.microsoftonline.com in httpProxy.noProxy",
    ],
    [
      { entra: other, httpProxy: { https: withLogin, noProxy: ["ogin.example.org"] } },
      "(pulumi config set --path 'httpProxy.noProxy[1]' login.example.org)",
    ],
  ],
  accepted: [
    ...["login.microsoftonline.com", ".microsoftonline.com", "*.microsoftonline.com", "*"].map(
      (direct) =>
        [
          `a way past the proxy, to ${direct}`,
          { entra, httpProxy: { https: withLogin, noProxy: [direct] } },
        ] as const,
    ),
    ["a proxy for http alone", { entra, httpProxy: { http: withLogin } }],
  ],
};
