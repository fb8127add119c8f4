/** The interface of scenarios to a daemon, as a process or inside the test process: HTTP endpoints and log lines. */

import { request } from 'undici';
import { eventually } from '../support/eventually.ts';

export type LogLine = Readonly<Record<string, unknown>>;

export abstract class RunningDaemon implements AsyncDisposable {
  /** The URL of `/readyz` and `/metrics`, such as `http://127.0.0.1:1234`. */
  readonly httpUrl: string;

  constructor(httpUrl: string) {
    this.httpUrl = httpUrl;
  }

  abstract get stderr(): string;

  /** Drains and stops the daemon, as SIGTERM does. Rejects if that fails. */
  abstract stop(): Promise<void>;

  abstract [Symbol.asyncDispose](): Promise<void>;

  /** The JSON lines on stderr; other lines are ignored. */
  get log(): LogLine[] {
    return this.stderr.split('\n').flatMap((line) => {
      try {
        return line.startsWith('{') ? [JSON.parse(line) as LogLine] : [];
      } catch {
        return [];
      }
    });
  }

  /** The first line with such a message, which may follow what a client sees. */
  async whenLogged(message: RegExp): Promise<LogLine | undefined> {
    return await eventually(
      () => this.log.find(({ msg }) => message.test(String(msg))),
      (line) => line !== undefined,
      { what: `a log line like ${message.source}` },
    );
  }

  /** Lines of level `error`, and those with a stack: bugs, unless the scenario expects them. */
  unexpectedLines(expected: readonly RegExp[]): LogLine[] {
    return this.log.filter((line) => {
      const isBad = line['level'] === 'error' || JSON.stringify(line).includes('"stack":');
      return isBad && !expected.some((pattern) => pattern.test(JSON.stringify(line)));
    });
  }

  async get(path: string): Promise<{ status: number; text: string }> {
    const answer = await request(`${this.httpUrl}${path}`);
    return { status: answer.statusCode, text: await answer.body.text() };
  }

  /** The sum over all series of one metric whose labels include `labels`, e.g. `{name: 'x'}`. 0 when there is none. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    return sumOf((await this.get('/metrics')).text, name, labels);
  }

  /** Waits for such a sum, and returns it: a series may follow what a client sees. */
  async whenMetric(
    name: string,
    holds: (sum: number) => boolean,
    labels: Readonly<Record<string, string>> = {},
  ): Promise<number> {
    return await eventually(() => this.metric(name, labels), holds, { what: `the series ${name}` });
  }

  /** No object is queued or being reconciled. */
  async isIdle(): Promise<boolean> {
    const { text } = await this.get('/metrics');
    return sumOf(text, 'workqueue_depth') === 0 && sumOf(text, 'workqueue_unfinished_work_seconds') === 0;
  }
}

function sumOf(metrics: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  let sum = 0;
  for (const line of metrics.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match?.[1] !== name) continue;
    const has = Object.entries(labels).every(([key, value]) => match[2]?.includes(`${key}="${value}"`));
    if (has) sum += Number(match[3]);
  }
  return sum;
}
