/** The client process of the API benchmark: runs phases that it receives over IPC, and sends back their results. */

import { messageOf } from '../src/base/errors.ts';
import { HttpConnection, requestText, type Peer, type RequestParts } from './http-connection.ts';
import { quantile } from './statistics.ts';

/** Sends requests for a time, or a number of them, over several connections with one request in flight each. */
export interface LoadPhase {
  readonly kind: 'load';
  readonly peer: Peer;
  /** `{n}` in path and body is the number of the request, from 0. */
  readonly request: RequestParts;
  readonly code: number;
  readonly connections: number;
  /** The phase ends after this time or this number of requests. */
  readonly millis?: number;
  readonly requests?: number;
}

export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly requests: number;
  readonly bytesPerResponse: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of one core. */
  readonly clientCpu: number;
}

/** Opens watches that stay open until `watch-close`. */
export interface WatchOpenPhase {
  readonly kind: 'watch-open';
  readonly peer: Peer;
  readonly path: string;
  readonly watchers: number;
}

/** Changes one object repeatedly; each change is sent when every watcher has received the previous one. */
export interface WatchEventsPhase {
  readonly kind: 'watch-events';
  readonly peer: Peer;
  /** `{n}` in the body is the number of the change; it must come back in the event as `"seq-{n}"`. */
  readonly request: RequestParts;
  readonly events: number;
  readonly pauseMs: number;
}

export interface WatchEventsResult {
  /** Change sent → event received, over all events and watchers. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Change sent → received by the last watcher, median. */
  readonly lastP50Ms: number;
  /** Change sent → response received, median. */
  readonly writeP50Ms: number;
  readonly deliveries: number;
  readonly clientCpu: number;
}

export interface WatchClosePhase {
  readonly kind: 'watch-close';
}

export type Phase = LoadPhase | WatchOpenPhase | WatchEventsPhase | WatchClosePhase;

class Client {
  readonly #watchers: HttpConnection[] = [];
  #onEvent: (line: Buffer) => void = () => undefined;

  async run(phase: Phase): Promise<LoadResult | WatchEventsResult | undefined> {
    switch (phase.kind) {
      case 'load':
        return load(phase);
      case 'watch-open':
        await this.#open(phase);
        return undefined;
      case 'watch-events':
        return this.#events(phase);
      case 'watch-close':
        for (const watcher of this.#watchers.splice(0)) watcher.close();
        return undefined;
      default:
        return phase satisfies never;
    }
  }

  async #open({ peer, path, watchers }: WatchOpenPhase): Promise<void> {
    const request = requestText(peer, { method: 'GET', path });
    for (let i = 0; i < watchers; i += WATCHES_AT_ONCE) {
      const count = Math.min(WATCHES_AT_ONCE, watchers - i);
      const opened = Array.from({ length: count }, () => HttpConnection.open(peer));
      for (const connection of await Promise.all(opened)) {
        this.#watchers.push(connection);
        connection
          .exchange(request, (piece) => this.#onEvent(piece))
          .then(({ code }) => fatal(new Error(`a watch ended with ${code}`)))
          .catch(fatal);
      }
    }
  }

  async #events(phase: WatchEventsPhase): Promise<WatchEventsResult> {
    const { peer, events, pauseMs } = phase;
    const connection = await HttpConnection.open(peer);
    const latencies: number[] = [];
    const lasts: number[] = [];
    const writes: number[] = [];
    const usage = cpuShare();
    for (let n = 0; n < events; n++) {
      const request = numbered(peer, phase.request, n);
      const mark = Buffer.from(`"seq-${n}"`);
      const sentMs = performance.now();
      const received = new Promise<void>((resolve) => {
        let missing = this.#watchers.length;
        this.#onEvent = (piece) => {
          if (!piece.includes(mark)) return;
          latencies.push(performance.now() - sentMs);
          missing -= 1;
          if (missing === 0) resolve();
        };
      });
      const { code } = await connection.exchange(request);
      if (code !== 200) throw new Error(`the response to a change is ${code}`);
      writes.push(performance.now() - sentMs);
      await within(received, EVENT_DEADLINE_MS);
      lasts.push(performance.now() - sentMs);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    const clientCpu = usage();
    connection.close();
    return {
      p50Ms: quantile(latencies, 0.5),
      p99Ms: quantile(latencies, 0.99),
      lastP50Ms: quantile(lasts, 0.5),
      writeP50Ms: quantile(writes, 0.5),
      deliveries: latencies.length,
      clientCpu,
    };
  }
}

const WATCHES_AT_ONCE = 50;
const EVENT_DEADLINE_MS = 15_000;

async function load(phase: LoadPhase): Promise<LoadResult> {
  const { peer, connections, millis = Infinity, requests = Infinity } = phase;
  const opened = await Promise.all(Array.from({ length: connections }, () => HttpConnection.open(peer)));
  const fixed = isNumbered(phase.request) ? undefined : requestText(peer, phase.request);
  const latencies: number[] = [];
  let begun = 0;
  let bytes = 0;
  const usage = cpuShare();
  const startMs = performance.now();
  const worker = async (connection: HttpConnection): Promise<void> => {
    for (let nowMs = startMs; nowMs - startMs < millis && begun < requests;) {
      const request = fixed ?? numbered(peer, phase.request, begun);
      begun += 1;
      const sentMs = performance.now();
      const answered = await connection.exchange(request);
      nowMs = performance.now();
      if (answered.code !== phase.code) {
        throw new Error(`${phase.request.method} ${phase.request.path} returned ${answered.code}`);
      }
      latencies.push(nowMs - sentMs);
      bytes += answered.bytes;
    }
  };
  await Promise.all(opened.map(worker));
  const tookMs = performance.now() - startMs;
  const clientCpu = usage();
  for (const connection of opened) connection.close();
  return {
    requestsPerSecond: (latencies.length / tookMs) * 1000,
    requests: latencies.length,
    bytesPerResponse: Math.round(bytes / latencies.length),
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    clientCpu,
  };
}

function isNumbered({ path, body = '' }: RequestParts): boolean {
  return path.includes('{n}') || body.includes('{n}');
}

function numbered(peer: Peer, { method, path, contentType, body = '' }: RequestParts, n: number): Buffer {
  const fill = (text: string): string => text.replaceAll('{n}', String(n));
  const type = contentType === undefined ? {} : { contentType };
  return requestText(peer, { method, path: fill(path), body: fill(body), ...type });
}

/** Returns a function that returns the share of one core that this process has used since. */
function cpuShare(): () => number {
  const startMs = performance.now();
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 / (performance.now() - startMs);
  };
}

async function within(promise: Promise<void>, deadlineMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`not every watcher received the event within ${deadlineMs} ms`)),
      deadlineMs,
    );
  });
  await Promise.race([promise, late]);
  clearTimeout(timer);
}

function fatal(error: unknown): void {
  process.send?.({ error: messageOf(error) });
}

const client = new Client();
process.on('message', (phase: Phase) => {
  client.run(phase).then((result) => process.send?.({ result }), fatal);
});
