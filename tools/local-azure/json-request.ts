import { request, type RequestOptions } from "node:https";

// What comes back is as wide as Kubernetes.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Body = Record<string, any>;

interface Answer {
  readonly status: number;
  /** What is no JSON is its `message`. */
  readonly body: Body;
}

/** Sends JSON over TLS, and returns the answer whatever its status; rejects where there is none. */
export function jsonRequest(
  { timeout = 0, headers, ...options }: RequestOptions,
  body?: unknown,
  type = "application/json",
): Promise<Answer> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        ...options,
        timeout,
        headers: {
          accept: "application/json",
          ...(text !== undefined && {
            "content-type": type,
            "content-length": Buffer.byteLength(text),
          }),
          ...headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            body: bodyOf(Buffer.concat(chunks).toString("utf8")),
          }),
        );
      },
    );
    sent.on("timeout", () => sent.destroy(new Error(`no answer within ${timeout / 1000} s`)));
    sent.on("error", reject);
    sent.end(text);
  });
}

function bodyOf(text: string): Body {
  try {
    return JSON.parse(text) as Body;
  } catch {
    return { message: text.trim() };
  }
}
