import type { Cases } from "./case";

const https = "http://proxy.example:3128";

/** Of a CA that has no key any more. */
export const proxyCa = [
  "-----BEGIN CERTIFICATE-----",
  "MIIBiDCCAS2gAwIBAgIUeuGh1uyYmY4XVNZacSGejGbOSUcwCgYIKoZIzj0EAwIw",
  "GDEWMBQGA1UEAwwNRXhhbXBsZSBwcm94eTAgFw0yNjExMjcwMzE2MzlaGA8yMTI2",
  "MTEwMzAzMTYzOVowGDEWMBQGA1UEAwwNRXhhbXBsZSBwcm94eTBZMBMGByqGSM49",
  "AgEGCCqGSM49AwEHA0IABE8H0GTfnO6aM8zqAtQKq0cGEnuWrE2WL0OECDmGhuZH",
  "OA1SOvG+kMQSmyLjqxiJVLOuRGJcMTkmgCDJtOdoAzSjUzBRMB0GA1UdDgQWBBRb",
  "sEPbJc2CI14W67lQFv0mmT0nhTAfBgNVHSMEGDAWgBRbsEPbJc2CI14W67lQFv0m",
  "mT0nhTAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQCHLXWNbD6S",
  "Pg4LvIhBQEHraQKcqxlgev3R9N/KRDjO1wIhAL1NdSbhumhTjEugVHDy4PELt4EI",
  "IBulznuzE6hNKCCz",
  "-----END CERTIFICATE-----",
].join("\n");

export const httpProxyCases: Cases = {
  refused: [
    ["a proxy that is no map", { httpProxy: https }, "expected values by name"],
    ["a proxy without an address", { httpProxy: { noProxy: [".example.com"] } }, "a proxy, beside"],
    ["a proxy without a port", { httpProxy: { https: "http://proxy.example" } }, "with its port"],
    [
      "a proxy of another kind",
      { httpProxy: { https: "socks5://proxy:1080" } },
      "of http or https",
    ],
    [
      "a password in clear",
      { httpProxy: { https: "http://me:hush@proxy.example:3128" } },
      "httpProxy.https has a password that is readable in the stack's file, expected an encrypted value, and another password, " +
        "since this one may be in the file's history (pulumi config set --secret --path httpProxy.https)",
    ],
    [
      "a name that nobody reads",
      { httpProxy: { https, nopasswd: "x" } },
      "http, https, noProxy, ca",
    ],
    ["two names in one", { httpProxy: { https, noProxy: ["a, b"] } }, 'noProxy[0] is "a, b"'],
    ["a CA that is none", { httpProxy: { https, ca: "proxy.example" } }, "certificates as PEM"],
    [
      "a CA with its key, without telling it",
      { httpProxy: { https, ca: `${proxyCa}\n-----BEGIN PRIVATE KEY-----\nAAAA` } },
      "certificates as PEM, and nothing else",
    ],
  ],
  accepted: [
    ["a proxy", { httpProxy: { https, http: https, noProxy: [".example.com", "10.0.0.0/8"] } }],
    ["a proxy with a CA of its own", { httpProxy: { https, ca: proxyCa } }],
  ],
};
