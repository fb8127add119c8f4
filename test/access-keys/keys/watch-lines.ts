/** Reads the events of a watch line by line. */

export interface Lines {
  next(): Promise<string>;
  /** Everything that came. */
  readonly text: string;
  close(): void;
}

export function readLines(url: string): Lines {
  const stopping = new AbortController();
  const lines = pieces(url, stopping.signal);
  let text = '';
  return {
    next: async () => {
      const { value } = await lines.next();
      text += value ?? '';
      return value ?? '';
    },
    get text() {
      return text;
    },
    close: () => stopping.abort(),
  };
}

async function* pieces(url: string, signal: AbortSignal): AsyncGenerator<string, undefined> {
  const response = await fetch(url, { signal });
  let rest = '';
  for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  return undefined;
}
