import { setTimeout as sleep } from "node:timers/promises";

const versions: readonly (readonly [RegExp, string])[] = [
  [/\/Microsoft\.Authorization\/locks(\/|$)/i, "2020-05-01"],
  [/\/Microsoft\.Authorization\/policyExemptions/i, "2022-07-01-preview"],
  [/\/Microsoft\.Authorization\/policy/i, "2025-01-01"],
  [/\/Microsoft\.PolicyInsights\//i, "2024-10-01"],
  [/\/Microsoft\.Authorization\//i, "2022-04-01"],
  [/\/Microsoft\.Network\/privateDnsZones(\/|$)/i, "2024-06-01"],
  [/\/Microsoft\.Network\//i, "2024-05-01"],
  [/\/Microsoft\.Features\//i, "2021-07-01"],
  [/\/Microsoft\.Compute\/(disks|diskEncryptionSets|snapshots)(\/|$)/i, "2024-03-02"],
  [/\/Microsoft\.Compute\//i, "2024-11-01"],
  [/\/Microsoft\.ContainerRegistry\//i, "2025-11-01"],
  [/\/Microsoft\.ManagedIdentity\//i, "2023-01-31"],
  [/\/Microsoft\.Storage\//i, "2024-01-01"],
  [/^\/subscriptions\//i, "2024-03-01"],
];

interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** Asks the local Azure by REST, and waits until an operation that this starts is done. */
export async function sendToAzure(
  endpoint: string,
  { method, path, body, signal }: Request,
): Promise<unknown> {
  const version = versions.find(([pattern]) => pattern.test(path))?.[1];
  const url = `${endpoint}${path}${version === undefined ? "" : `?api-version=${version}`}`;
  const ask = (address: string, how: RequestInit) =>
    fetch(address, {
      ...how,
      headers: { authorization: "Bearer test", "content-type": "application/json" },
      signal,
    });
  const response = await ask(url, {
    method,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  for (const operation = response.headers.get("azure-asyncoperation"); operation !== null;) {
    const done = (await (await ask(operation, {})).json()) as { status: string; error?: object };
    if (done.status === "Succeeded") break;
    if (done.status === "Failed")
      throw new Error(`${method} ${path}: ${JSON.stringify(done.error)}`);
    await sleep(50, undefined, { signal });
  }
  return text === "" ? undefined : JSON.parse(text);
}
