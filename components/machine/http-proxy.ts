import type { PayloadFile } from "../kubeadm/payload-file";
import { wantsLogin } from "../settings/proxy-login";
import { type ProxySettings, proxyVariables } from "../settings/proxy";

/**
 * The proxy's variables for a machine: first-boot.sh has apt, containerd and Docker use it, and gives what it makes of
 * it the same mode. Empty files say that there is none, to a machine that had one. curl reads `http_proxy` in
 * lower case alone.
 */
export const proxyFiles = (settings: ProxySettings, apiName: string): PayloadFile[] => [
  {
    path: "/etc/zoned/proxy.env",
    mode: wantsLogin(settings.httpProxy) ? "0600" : "0644",
    content: proxyVariables(settings, apiName)
      .flatMap(({ name, value }) => [name, name.toLowerCase()].map((one) => `${one}='${value}'\n`))
      .join(""),
  },
  { path: "/etc/zoned/proxy-ca.crt", mode: "0644", content: settings.httpProxy?.ca ?? "" },
];
