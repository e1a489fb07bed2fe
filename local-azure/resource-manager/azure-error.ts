/** A refusal in Azure's own words: HTTP status, code and message. */
export class AzureError extends Error {
  override readonly name = "AzureError";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Path of the property that is to blame, where Azure names one. */
    readonly target?: string,
    /** Seconds of the header Retry-After. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }
}

/** No answer at all: whoever asked does not know what has become of the request. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";

  constructor() {
    super("read ECONNRESET: the connection to Azure was lost");
  }
}

/** A PUT that Azure accepted and whose operation then failed: the resource stays, in state Failed. */
export class OperationFailed extends AzureError {}

export const refuse = (code: string, message: string, target?: string): AzureError =>
  new AzureError(400, code, message, target);

export const conflict = (code: string, message: string, target?: string): AzureError =>
  new AzureError(409, code, message, target);

export const invalidParameter = (message: string, target?: string): AzureError =>
  refuse("InvalidParameter", message, target);

export const propertyChangeNotAllowed = (path: string): AzureError =>
  conflict("PropertyChangeNotAllowed", `Changing property '${path}' is not allowed.`, path);

export const invalidReference = (target: string, me: string): AzureError =>
  refuse(
    "InvalidResourceReference",
    `Resource ${target} referenced by resource ${me} was not found. ` +
      "Please make sure that the referenced resource exists, and that both resources are in the same region.",
  );
