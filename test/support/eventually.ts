/** Polls until a condition holds. Scenarios wait for conditions only, never for a fixed time. */

const INTERVAL_MS = 15;

export interface WaitOptions {
  /** Default 60 s, as the machine may be busy. */
  timeoutMs?: number;
  /** For the error message after the timeout. */
  what?: string;
}

/** Calls `probe` until `holds` is true for its result, which is returned. An error counts as false. */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  holds: (value: T) => boolean,
  options: WaitOptions = {},
): Promise<T> {
  const timeoutMs = options.timeoutMs ?? 60_000;
  const deadline = performance.now() + timeoutMs;
  let last: unknown = 'nothing was seen';
  for (;;) {
    try {
      const value = await probe();
      if (holds(value)) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) throw new Error(message(options, timeoutMs, last), { cause: last });
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
  }
}

function message(options: WaitOptions, timeoutMs: number, last: unknown): string {
  const seen = last instanceof Error ? last.message : JSON.stringify(last, undefined, 1);
  return `${options.what ?? 'the condition'} did not hold within ${timeoutMs} ms; last seen: ${seen?.slice(0, 3000)}`;
}
