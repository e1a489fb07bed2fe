/** An error response of Azure: HTTP status, code and message. */
export class AzureError extends Error {
  override readonly name = "AzureError";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Path of the invalid property, where Azure names one. */
    readonly target?: string,
    /** Seconds, for the header Retry-After. */
    readonly retryAfter?: number,
    /** Details for programs. */
    readonly additionalInfo?: readonly object[],
  ) {
    super(message);
  }
}

/** No response: the client cannot know whether the request was processed. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";

  constructor() {
    super("read ECONNRESET: the connection to Azure was lost");
  }
}

/**
 * A PUT that Azure accepted and whose operation then failed: the resource stays, in state Failed.
 */
export class OperationFailed extends AzureError {}

export const refuse = (code: string, message: string, target?: string): AzureError =>
  new AzureError(400, code, message, target);

export const conflict = (code: string, message: string, target?: string): AzureError =>
  new AzureError(409, code, message, target);

export const badRequest = (message: string): AzureError => refuse("BadRequest", message);

export const operationNotAllowed = (message: string, target?: string): AzureError =>
  conflict("OperationNotAllowed", message, target);

export const missingParameter = (path: string): AzureError =>
  invalidParameter(`Required parameter '${path}' is missing (null).`, path);

export const invalidParameter = (message: string, target?: string): AzureError =>
  refuse("InvalidParameter", message, target);

export const methodNotAllowed = (method: string, type: string): AzureError =>
  new AzureError(
    405,
    "MethodNotAllowed",
    `The requested resource of type ${type} does not support http method '${method}'.`,
  );

export const propertyChangeNotAllowed = (path: string): AzureError =>
  conflict("PropertyChangeNotAllowed", `Changing property '${path}' is not allowed.`, path);

export const missingResource = (id: string): AzureError =>
  new AzureError(404, "NotFound", `Resource ${id} not found.`);

/** What Network says of a part that another resource does not have, such as a subnet. */
export const subResourceNotFound = ({ id }: { readonly id: string }): AzureError =>
  missingResource(id);

export const invalidReference = (target: string, from: string): AzureError =>
  refuse(
    "InvalidResourceReference",
    `Resource ${target} referenced by resource ${from} was not found. ` +
      "Please make sure that the referenced resource exists, and that both resources are in the same region.",
  );
