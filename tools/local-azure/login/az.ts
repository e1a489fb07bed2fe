import { account } from "../arm/resources/resource";
import { loginToken } from "../machines/identity-token";

const { subscriptionId, tenantId, clientId } = account;
const lifeSeconds = 3600;

/**
 * The answers of Azure's command line, as far as azure-native asks it for a login, about the login of the
 * local Azure.
 *
 * @throws Error for any other command
 */
function answer(args: readonly string[]): object {
  switch (args.slice(0, 2).join(" ")) {
    case "account show":
      return {
        environmentName: "AzureCloud",
        id: subscriptionId,
        isDefault: true,
        name: "local Azure",
        state: "Enabled",
        tenantId,
        user: { name: clientId, type: "servicePrincipal" },
      };
    case "account get-access-token": {
      const resource = args[args.indexOf("--resource") + 1] ?? "";
      return {
        accessToken: loginToken(resource),
        expires_on: Math.floor(Date.now() / 1000) + lifeSeconds,
        subscription: subscriptionId,
        tenant: tenantId,
        tokenType: "Bearer",
      };
    }
    default:
      throw new Error(`the local Azure's az has no command ${args.join(" ")}`);
  }
}

try {
  console.log(JSON.stringify(answer(process.argv.slice(2))));
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 2;
}
