/**
 * Does work whose signal is aborted with this one, and after so many milliseconds at the latest. A
 * timer of its own: what AbortSignal.timeout returns may be collected as garbage before its time where
 * nothing but AbortSignal.any has it (nodejs/node#57736).
 */
export async function withTimeLimit<T>(
  milliseconds: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const late = new Error(`no answer within ${milliseconds / 1000} s`);
  const timer = setTimeout(() => limit.abort(late), milliseconds);
  try {
    return await work(AbortSignal.any([signal, limit.signal]));
  } finally {
    clearTimeout(timer);
  }
}
