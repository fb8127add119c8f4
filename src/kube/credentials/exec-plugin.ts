/** Exec plugins of kubeconfigs, as client-go 0.36 runs them: what they are told, which answers are credentials, and how they fail. */

import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../base/errors.ts';
import type { Clock } from '../../base/clock.ts';
import { plainText } from '../../base/excerpt.ts';
import {
  isJsonObject,
  listField,
  objectField,
  objectList,
  ownValue,
  parseJson,
  setOwn,
  text,
  type JsonObject,
  type JsonValue,
} from '../../base/json.ts';
import { parseYaml } from '../../base/yaml/document.ts';
import { headerBytes } from '../access.ts';
import { entryError, type NamedEntry, type UserEntry } from './kubeconfig-file.ts';

const GROUP = 'client.authentication.k8s.io';
const API_VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`];
const KIND = 'ExecCredential';
const MODES = ['Never', 'IfAvailable', 'Always'];

const TIMEOUT_MS = 60_000;
/** A token or a certificate has a few thousand characters. */
const PRINTED_MAX = 256 * 1024;
const EXCERPT_MAX = 500;

/** What a plugin returns: a token, a certificate with its key, or both. */
export interface ExecAnswer {
  readonly token?: string;
  readonly certificate?: { readonly cert: string; readonly key: string };
  /** Epoch milliseconds. */
  readonly expiresAtMs?: number;
}

interface ExecSettings {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly installHint: string;
  /** The plugin may ask the user, on the terminal of this process. */
  readonly isInteractive: boolean;
}

/** Runs the plugin for the first request and after the expiry of what it returned. */
export class ExecPlugin {
  readonly #settings: ExecSettings;
  readonly #clock: Clock;
  #answer: ExecAnswer | undefined;

  /** Throws `TerminalError` if the plugin needs a terminal. */
  constructor(entry: UserEntry, clock: Clock, isTerminal = Boolean(process.stdin.isTTY)) {
    this.#settings = execSettings(entry, isTerminal);
    this.#clock = clock;
  }

  async applyAuthentication(applied: {
    readonly headers: Record<string, string>;
    cert?: string;
    key?: string;
  }): Promise<void> {
    const { token, certificate } = await this.#current();
    if (token !== undefined) applied.headers['Authorization'] = headerBytes(`Bearer ${token}`) ?? '';
    Object.assign(applied, certificate);
  }

  /** Its answer is not accepted any more. */
  forget(): void {
    this.#answer = undefined;
  }

  async #current(): Promise<ExecAnswer> {
    const { expiresAtMs = Infinity } = this.#answer ?? { expiresAtMs: -Infinity };
    if (this.#answer === undefined || this.#clock.now() > expiresAtMs)
      this.#answer = execAnswer(await run(this.#settings), this.#settings.apiVersion);
    return this.#answer;
  }
}

/** As client-go checks the entry when it loads a kubeconfig. Throws `TerminalError`. `isSecure`: the plugin may be run, as the server has an https URL. */
export function checkExec(user: NamedEntry, isSecure: boolean): void {
  const exec = objectField(user.fields, 'exec');
  const fail = (field: string, problem: string): never => {
    throw entryError(user, `exec.${field}`, problem);
  };
  const { apiVersion, mode } = modeOf(exec);
  if (apiVersion === '' || (isSecure && !API_VERSIONS.includes(apiVersion)))
    fail('apiVersion', `${JSON.stringify(apiVersion)} is not supported; use ${API_VERSIONS.join(' or ')}`);
  if (text(exec, 'command') === '') fail('command', 'is missing; name the plugin');
  if (objectList(exec, 'env').some((variable) => text(variable, 'name') === ''))
    fail('env', 'has an entry without a name; name the variable');
  if (!MODES.includes(mode))
    fail('interactiveMode', `${JSON.stringify(mode)} is none of ${MODES.join(', ')}; use one of them`);
}

/** v1 has no default, so that whoever writes a kubeconfig thinks of the standard input. */
function modeOf(exec: JsonObject): { readonly apiVersion: string; readonly mode: string } {
  const apiVersion = text(exec, 'apiVersion');
  const standard = [`${GROUP}/v1alpha1`, `${GROUP}/v1beta1`].includes(apiVersion) ? 'IfAvailable' : '';
  return { apiVersion, mode: text(exec, 'interactiveMode') || standard };
}

/** Of an entry that {@link checkExec} takes. */
function execSettings({ user, cluster }: UserEntry, isTerminal: boolean): ExecSettings {
  const exec = objectField(user.fields, 'exec');
  const { apiVersion, mode } = modeOf(exec);
  if (mode === 'Always' && !isTerminal)
    throw entryError(
      user,
      'exec.interactiveMode',
      'is Always, but the standard input of this process is not a terminal; use Never or IfAvailable',
    );
  const isInteractive = mode !== 'Never' && isTerminal;
  const provided = exec['provideClusterInfo'] === true ? { cluster } : {};
  const info = { kind: KIND, apiVersion, spec: { ...provided, interactive: isInteractive } };
  return {
    apiVersion,
    command: text(exec, 'command'),
    args: listField(exec, 'args').filter((one) => typeof one === 'string'),
    environment: { ...environmentOf(exec), KUBERNETES_EXEC_INFO: JSON.stringify(info) },
    installHint: text(exec, 'installHint'),
    isInteractive,
  };
}

function environmentOf(exec: JsonObject): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const variable of objectList(exec, 'env'))
    setOwn(environment, text(variable, 'name'), text(variable, 'value'));
  return environment;
}

/** What the plugin prints on its standard output. No error has a character of it: it may be a credential. */
async function run({
  command,
  args,
  environment,
  installHint,
  isInteractive,
}: ExecSettings): Promise<string> {
  const file = executable(command);
  if (file === undefined) {
    const hint = plainText(installHint.trim().slice(0, EXCERPT_MAX));
    throw new Error(
      `executable ${command} not found; ${hint || 'install it, or correct the command of the user'}`,
    );
  }
  const plugin = spawn(file, args, {
    env: { ...process.env, ...environment },
    stdio: [isInteractive ? 'inherit' : 'ignore', 'pipe', isInteractive ? 'inherit' : 'pipe'],
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  let size = 0;
  const printed = { out: '', error: '' };
  const streams = { out: plugin.stdout, error: plugin.stderr };
  const keep = (name: 'out' | 'error') => (text: string) => {
    size += text.length;
    if (size <= PRINTED_MAX) printed[name] += text;
    else {
      plugin.kill('SIGKILL');
      // Its own children may go on printing.
      for (const stream of Object.values(streams)) stream?.destroy();
    }
  };
  for (const name of ['out', 'error'] as const) streams[name]?.setEncoding('utf8').on('data', keep(name));
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  plugin.once('error', (cause) => reject(new Error(`it cannot be run: ${messageOf(cause)}`, { cause })));
  plugin.once('close', (code, signal) => {
    const how = signal === null ? `exited with ${code}` : `was ended by ${signal}`;
    if (size > PRINTED_MAX) reject(new Error(`it printed more than ${PRINTED_MAX} characters`));
    else if (code === 0) resolve(printed.out);
    else reject(new Error(printed.error.trim().slice(0, EXCERPT_MAX) || `it printed no error, and ${how}`));
  });
  return promise;
}

/** As Go's LookPath: undefined if there is none that may be run. */
function executable(command: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const files = command.includes('/') ? [command] : folders.map((folder) => join(folder, command));
  return files.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return statSync(file).isFile();
    } catch {
      return false;
    }
  });
}

/** The credentials in what a plugin printed. Throws an error that shows nothing of it. `apiVersion`: of the kubeconfig. */
function execAnswer(printed: string, apiVersion: string): ExecAnswer {
  const answer = parsed(printed);
  if (answer === undefined) throw new Error(`it printed something that is not an ${KIND}`);
  if ((ownValue(answer, 'kind') || KIND) !== KIND)
    throw new Error(`it returned an object that is not an ${KIND}`);
  const version = ownValue(answer, 'apiVersion');
  if (version !== apiVersion) {
    const other = API_VERSIONS.find((one) => one === version) ?? 'another version';
    throw new Error(
      `it returned an ${KIND} of ${other}, but its apiVersion in the kubeconfig is ${apiVersion}`,
    );
  }
  const status = ownValue(answer, 'status') ?? null;
  if (status === null) throw new Error('it returned no status');
  if (!isJsonObject(status)) throw new Error('it returned a status that is not a mapping');
  return credentialsIn(status);
}

/** JSON, or else YAML. */
function parsed(text: string): JsonObject | undefined {
  const value = jsonOf(text) ?? yamlOf(text);
  return isJsonObject(value) ? value : undefined;
}

function jsonOf(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

function yamlOf(text: string): JsonValue | undefined {
  const { json, isReadable, duplicates } = parseYaml(text);
  return isReadable && duplicates.length === 0 ? json : undefined;
}

function credentialsIn(status: JsonObject): ExecAnswer {
  const [token, cert, key] = ['token', 'clientCertificateData', 'clientKeyData'].map((field) => {
    const value = ownValue(status, field) ?? '';
    if (typeof value !== 'string') throw new Error(`it returned a status.${field} that is not text`);
    return value;
  });
  if (!token && !cert && !key) throw new Error('it returned neither a token nor a certificate and its key');
  if (!cert !== !key) throw new Error('it returned only a certificate or a key, not both');
  if (token && headerBytes(token) === undefined)
    throw new Error('it returned a token with characters that no HTTP header may have');
  const expiresAtMs = expiryOf(ownValue(status, 'expirationTimestamp') ?? null);
  return {
    ...(token ? { token } : {}),
    ...(cert && key ? { certificate: checkedPair(cert, key) } : {}),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
  };
}

const TIMESTAMP = /^\d{4}-\d{2}-(\d{2})T([01]\d|2[0-3]):[0-5]\d:[0-5]\d([.,]\d+)?(Z|[+-]\d{2}:\d{2})$/u;

function expiryOf(value: JsonValue): number | undefined {
  if (value === null) return undefined;
  const text = typeof value === 'string' ? value : '';
  const day = TIMESTAMP.exec(text)?.[1];
  const date = day === undefined ? NaN : Date.parse(text.replace(',', '.'));
  // Date.parse takes February 30 for March 2.
  const isDay =
    !Number.isNaN(date) && new Date(`${text.slice(0, 10)}T00:00:00Z`).getUTCDate() === Number(day);
  if (!isDay) throw new Error('it returned a status.expirationTimestamp that is not a time of RFC 3339');
  return date;
}

function checkedPair(cert: string, key: string): { readonly cert: string; readonly key: string } {
  try {
    createSecureContext({ cert, key });
  } catch {
    throw new Error('it returned a certificate and a key that are not a pair in PEM');
  }
  return { cert, key };
}
