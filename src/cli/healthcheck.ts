/** `healthcheck`: waits until a daemon is ready and runs a configuration. For `helm test`, because a changed ConfigMap reaches a Pod a minute later. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { sleep, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { configurationHash } from '../syncer/config/config.ts';
import { loadConfig } from './config/load.ts';
import { addConfigOptions, loaderInput } from './config-options.ts';
import { secondsIn } from './keys/keys-options.ts';
import { tell, type ExitWith } from './output/terminal.ts';

const POLL_MS = 1000;
const REQUEST_TIMEOUT_MS = 5000;

interface HealthOptions {
  readonly url: string;
  /** Seconds. */
  readonly timeout: number;
}

export function define(command: Command, exitWith: ExitWith): void {
  addConfigOptions(command, ['name']);
  command
    .addOption(
      new Option('--url <url>', 'where the daemon serves /readyz and /metrics')
        .argParser(httpUrl)
        .default('http://127.0.0.1:8080'),
    )
    .addOption(new Option('--timeout <duration>', 'how long to wait').argParser(secondsIn).default(180, '3m'))
    .action((options: HealthOptions) => exitWith(() => run(command, options)));
}

function httpUrl(text: string): string {
  if (/^https?:\/\//u.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError('It must be an http:// or https:// URL such as http://127.0.0.1:8080.');
}

async function run(command: Command, { url, timeout }: HealthOptions): Promise<number> {
  const { config } = await loadConfig({ ...loaderInput(command), acceptsFleet: true });
  const hash = configurationHash(config);
  const signal = AbortSignal.timeout(timeout * 1000);
  for (;;) {
    const problem = await problemAt(url, hash).catch(
      (error: unknown) => `does not respond: ${messageOf(causeOf(error)).trim()}`,
    );
    if (problem === undefined) return 0;
    if (signal.aborted) {
      tell(`error: the daemon at ${url} ${problem}`);
      return 1;
    }
    await sleep(systemClock, POLL_MS, signal);
  }
}

async function problemAt(url: string, hash: string): Promise<string | undefined> {
  const ready = await read(`${url}/readyz`);
  if (!ready.isOk) return `is not ready:\n${ready.text}`;
  const { text } = await read(`${url}/metrics`);
  const inUse = /_config_last_reload_success_timestamp_seconds\{hash="(?<hash>[\w-]*)"\}/u.exec(text)
    ?.groups?.['hash'];
  const isApplied = /_config_last_reload_successful 1$/mu.test(text);
  if (inUse === hash && isApplied) return undefined;
  return isApplied
    ? `runs configuration ${inUse ?? 'of an earlier version'}, not ${hash}`
    : 'has not applied its configuration; its log and the Event ConfigurationNotApplied on its Lease say why';
}

async function read(url: string): Promise<{ readonly isOk: boolean; readonly text: string }> {
  const response = await fetch(url, { signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
  return { isOk: response.ok, text: await response.text() };
}

/** Of an error of `fetch`, whose own message is `fetch failed`. If several addresses were tried, the first one stands for all. */
function causeOf(error: unknown): unknown {
  if (error instanceof AggregateError) return causeOf(error.errors[0]);
  return error instanceof Error && error.cause !== undefined ? causeOf(error.cause) : error;
}
