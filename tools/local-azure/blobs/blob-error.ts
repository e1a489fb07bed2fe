/** An error of the Blob service: HTTP status, code and message as Azure has them. */
export class BlobError extends Error {
  override readonly name = "BlobError";

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Further elements of the body, such as AuthenticationErrorDetail. */
    readonly details: Readonly<Record<string, string>> = {},
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

export const containerNotFound = (): BlobError =>
  new BlobError(404, "ContainerNotFound", "The specified container does not exist.");

export const blobNotFound = (): BlobError =>
  new BlobError(404, "BlobNotFound", "The specified blob does not exist.");

export const invalidHeader = (header: string, value: string): BlobError =>
  new BlobError(
    400,
    "InvalidHeaderValue",
    "The value for one of the HTTP headers is not in the correct format.",
    { HeaderName: header, HeaderValue: value },
  );

export const invalidParameter = (parameter: string, value: string, reason: string): BlobError =>
  new BlobError(
    400,
    "InvalidQueryParameterValue",
    "Value for one of the query parameters specified in the request URI is invalid.",
    { QueryParameterName: parameter, QueryParameterValue: value, Reason: reason },
  );

/** What Azure has, and nothing here asks for. */
export const unsupported = (what: string): BlobError =>
  new BlobError(501, "NotImplemented", `The local Azure's Blob service does not support ${what}.`);
