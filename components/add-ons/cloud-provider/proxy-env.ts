import { proxyVariables, type ProxySettings } from "../../settings/proxy";
import { hasLogin } from "../../settings/proxy-login";
import { cloudConfigSecret } from "./cloud-config";

/**
 * The proxy's variables for a pod that calls Azure. An address with a password comes from the Secret, since
 * more people may read a pod.
 */
export const proxyEnv = (settings: ProxySettings, apiName: string) =>
  proxyVariables(settings, apiName).map(({ name, value }) =>
    hasLogin(value)
      ? { name, valueFrom: { secretKeyRef: { name: cloudConfigSecret.name, key: name } } }
      : { name, value },
  );
