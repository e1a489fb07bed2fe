import { Writable } from "node:stream";

import type { Exec, V1Status } from "@kubernetes/client-node";

/** What a command printed, or why there is nothing. */
export type Outcome = { readonly output: string } | { readonly failure: string };

export type Run = (command: readonly string[]) => Promise<Outcome>;

type Socket = Awaited<ReturnType<Exec["exec"]>>;

/** On an emulated processor a command takes a minute and more. */
const patience = 180_000;

interface Place {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

export function execIn(exec: Exec, { namespace, pod, container }: Place): Run {
  return async (command) => {
    const output = new Collected();
    const errors = new Collected();
    let report: (status: V1Status) => void = () => undefined;
    const reported = new Promise<V1Status>((resolve) => (report = resolve));
    try {
      const socket = await exec.exec(
        namespace,
        pod,
        container,
        [...command],
        output,
        errors,
        null,
        false,
        (status) => report(status),
      );
      const status = await Promise.race([reported, gone(socket)]).finally(() => socket.terminate());
      if (status.status === "Success") return { output: output.text() };
      return { failure: errors.text().trim() || (status.message ?? "without a message") };
    } catch (error) {
      return { failure: ended(error) };
    }
  };
}

/** Rejects when the command will not be heard of any more. */
const gone = (socket: Socket): Promise<never> =>
  new Promise((_, reject) => {
    const late = setTimeout(
      () => reject(new Error(`it has not ended after ${patience / 1000} s`)),
      patience,
    );
    socket.onclose = () => {
      clearTimeout(late);
      reject(new Error("the connection ended before it did"));
    };
  });

class Collected extends Writable {
  private readonly chunks: Buffer[] = [];

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.chunks.push(chunk);
    done();
  }

  text(): string {
    return Buffer.concat(this.chunks).toString("utf8");
  }
}

/** What a connection died of; a WebSocket throws events, Node hides the reason in the cause. */
export function ended(error: unknown): string {
  const { message, cause, code } = error as { message?: string; cause?: unknown; code?: string };
  if (cause instanceof Error && cause.message !== "") return cause.message;
  return message || code || String(error);
}
