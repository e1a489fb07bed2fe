/** Why Entra gives no token, by the number that its documentation has it under. */
export class Refusal extends Error {
  constructor(
    readonly number: number,
    message: string,
    readonly error: "invalid_client" | "invalid_request" | "invalid_resource" = "invalid_client",
  ) {
    super(`AADSTS${number}: ${message}`);
  }
}
