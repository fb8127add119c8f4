/** `keys`: the commands for access keys and the tokens that they issue. */

import { endOfKey } from '../../access-keys/keys/stored-key.ts';
import { metadataOf } from '../../kube/object.ts';
import { type Command, Option, InvalidArgumentError } from 'commander';
import { addConfigOptions, API_FIELDS } from '../config-options.ts';
import { type ExitWith, usageError, tell } from '../output/terminal.ts';
import { outputOption, formatListing, type Listing, formatOption } from '../output/listing.ts';
import {
  ApiClient,
  type ApiCall,
  addConnectionOptions,
  connectionFor,
  serverOption,
} from './keys-connection.ts';
import { addCreateOptions, createKey, namesOneOwner, rotateKey } from './keys-create.ts';
import type { BootstrapOptions } from './keys-bootstrap.ts';
import { KEY_FORMATS, secondsIn } from './keys-options.ts';
import { addTokenOptions, printToken } from './keys-token.ts';
import { TerminalError } from '../../base/errors.ts';
import {
  type JsonObject,
  textAt,
  isJsonObject,
  valueAt,
  type JsonValue,
  listField,
} from '../../base/json.ts';
import { StatusError } from '../../kube/status-error.ts';

export function define(keys: Command, exitWith: ExitWith): void {
  const part = (name: string, summary: string): Command => keys.command(name).description(summary);
  const withName = (name: string, summary: string): Command =>
    part(name, summary).argument('<name>', 'name of the key');

  const first = part(
    'bootstrap',
    "create the first administrator's key and print it, once; on the machine of the API",
  )
    .addOption(serverOption('address of the running API; default: that of the configuration'))
    .option('--rotate', 'revoke the first key and create another')
    .addOption(secretOption());
  addConfigOptions(first, API_FIELDS);
  first.action((options: BootstrapOptions) =>
    exitWith(async () => {
      // It alone may have to serve the API.
      const { bootstrap } = await import('./keys-bootstrap.ts');
      return bootstrap(first, options);
    }),
  );

  const create = part('create', 'create a key and print it, once').addOption(secretOption());
  addCreateOptions(create);
  create.hook('preAction', () => {
    if (namesOneOwner(create.opts())) return;
    const message = 'error: name the subject of the key with exactly one of --user, --team and --subject';
    create.error(message, { exitCode: 2 });
  });
  withClient(create, exitWith, createKey);

  withClient(withName('get', 'show a key without its secret').addOption(outputOption()), exitWith, getKey);

  const list = part('list', 'list the keys that you may see').alias('ls').addOption(outputOption());
  addListOptions(list);
  withClient(list, exitWith, listKeys);

  const overlap = new Option(
    '--overlap <duration>',
    'time during which the old secret stays valid, at most 7d',
  )
    .argParser(secondsIn)
    .default(0, '0: it is revoked immediately, with the tokens of the key');
  const rotate = withName('rotate', 'rotate the secret of a key and print the new one, once')
    .addOption(overlap)
    .addOption(secretOption());
  withClient(rotate, exitWith, rotateKey);

  const revoke = part('revoke', 'delete keys; requests that use them fail immediately')
    .argument('<names...>', 'names of keys')
    .option('--disable', 'disable the keys instead of deleting them')
    .option('--enable', 'enable disabled keys');
  withClient(revoke, exitWith, revokeKeys);

  const token = part('token', 'issue a token for a connected cluster, or a kubeconfig that renews it');
  addTokenOptions(token);
  withClient(token, exitWith, printToken);
}

function addListOptions(command: Command): void {
  const durations = new Option('--expiring <duration>', 'only keys that expire within this time, such as 7d');
  const expired = new Option('--expired', 'only keys that have expired, which are deleted after 7 days');
  const fields = 'name, subject, created, expires, last-activity, or a field such as .spec.ttl';
  command
    .option('-l, --selector <selector>', 'label selector')
    .option('--field-selector <selector>', 'field selector: metadata.name, spec.user or spec.team')
    .addOption(durations.argParser(secondsIn))
    .addOption(expired.conflicts('expiring'))
    .addOption(new Option('--sort-by <field>', fields).argParser(sortField));
}

/** Adds the options of the connection, and the action `work`, which rejects with `StatusError` when the server denies a request. */
function withClient<A extends unknown[]>(
  command: Command,
  exitWith: ExitWith,
  work: (client: ApiClient, ...args: A) => Promise<number>,
): void {
  addConnectionOptions(command);
  const run = async (...args: A): Promise<number> => {
    await using client = new ApiClient(await connectionFor(command));
    return await work(client, ...args);
  };
  command.action((...args: A) => exitWith(() => run(...args)));
}

function secretOption(): Option {
  return formatOption(KEY_FORMATS, 'the key alone, a kubeconfig with it, or the object');
}

export interface RevokeOptions {
  readonly disable?: true;
  readonly enable?: true;
}

/** Continues after a failure; exit code 1 if any key failed. */
export async function revokeKeys(
  client: Pick<ApiClient, 'send'>,
  names: readonly string[],
  options: RevokeOptions,
): Promise<number> {
  if (options.disable && options.enable) return usageError('--disable and --enable exclude each other');
  const word = options.disable ? 'disabled' : options.enable ? 'enabled' : 'revoked';
  let failures = 0;
  for (const name of names) {
    try {
      await client.send(callFor(name, options));
      const note = word === 'revoked' ? await confirmDeletion(client, name) : '';
      tell(`key ${name} is ${word}${note}`);
    } catch (error) {
      if (!(error instanceof StatusError || error instanceof StillValid)) throw error;
      failures += 1;
      tell(`error: ${error.message}`);
    }
  }
  return failures === 0 ? 0 : 1;
}

function callFor(name: string, { disable, enable }: RevokeOptions): ApiCall {
  const path = keyPath(name);
  if (!disable && !enable) return { method: 'DELETE', path, body: DELETE_NOW };
  const body = { spec: { disabled: disable === true } };
  return { method: 'PATCH', path, body, contentType: 'application/merge-patch+json' };
}

const DELETE_NOW = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 };

function keyPath(name: string): string {
  return `ownedaccesskeys/${encodeURIComponent(name)}`;
}

class StillValid extends Error {
  override readonly name = 'StillValid';
}

/** Asks the API whether the key has ended, and returns what is left of it, in words. Throws {@link StillValid}. */
async function confirmDeletion(client: Pick<ApiClient, 'send'>, name: string): Promise<string> {
  const metadata = await metadataOfKey(client, name);
  if (metadata === undefined) return '';
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds !== 0)
    throw new StillValid(
      `key ${name} still exists after its deletion${typeof deletionTimestamp === 'string' ? ` and works until ${deletionTimestamp}` : ''}; ` +
        `run "endpoint-syncer keys revoke --disable ${name}", and look with "endpoint-syncer keys get ${name} -o yaml"`,
    );
  const finalizers = listField(metadata, 'finalizers').filter((name) => typeof name === 'string');
  return `; the object stays until its finalizers are removed: ${finalizers.join(', ')}`;
}

/** Undefined: the key is gone, or it was that of this request. */
async function metadataOfKey(client: Pick<ApiClient, 'send'>, name: string): Promise<JsonObject | undefined> {
  try {
    return metadataOf(await client.send({ method: 'GET', path: keyPath(name) }));
  } catch (error) {
    const cause = error instanceof TerminalError ? error.cause : error;
    if (cause instanceof StatusError && (cause.code === 404 || cause.code === 401)) return undefined;
    throw error;
  }
}

// `keys list` and `keys get`: keys without their secrets.

interface ListOptions {
  readonly output: string;
  readonly selector?: string;
  readonly fieldSelector?: string;
  /** Seconds. */
  readonly expiring?: number;
  readonly expired?: true;
  readonly sortBy?: string;
}

const TABLE_MEDIA = 'application/json;as=Table;v=v1;g=meta.k8s.io';

async function listKeys(client: ApiClient, options: ListOptions): Promise<number> {
  const { output } = options;
  const isTable = isTableFormat(output);
  const list = await read(client, `ownedaccesskeys${queryOf(options, isTable)}`, isTable);
  const selected = isTable
    ? select(list, 'rows', objectIn, options)
    : select(list, 'items', (item) => item, options);
  const listing = isTable ? listingOfTable(selected) : listingOf(objectsIn(selected, 'items'), selected);
  process.stdout.write(formatListing(listing, output));
  if (isTable && listing.rows.length === 0) tell('no keys');
  return 0;
}

async function getKey(client: ApiClient, name: string, { output }: ListOptions): Promise<number> {
  const isTable = isTableFormat(output);
  const answer = await read(client, keyPath(name), isTable);
  const listing = isTable ? listingOfTable(answer) : listingOf([answer], answer);
  process.stdout.write(formatListing(listing, output));
  return 0;
}

function read(client: ApiClient, path: string, isTable: boolean): Promise<JsonObject> {
  return client.send({ method: 'GET', path, ...(isTable && { accept: TABLE_MEDIA }) });
}

function isTableFormat(output: string): boolean {
  return output === 'table' || output === 'wide';
}

function queryOf({ selector, fieldSelector }: ListOptions, isTable: boolean): string {
  const query = new URLSearchParams({
    ...(selector === undefined ? {} : { labelSelector: selector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(isTable ? { includeObject: 'Object' } : {}),
  });
  return query.size === 0 ? '' : `?${query.toString()}`;
}

function listingOf(keys: readonly JsonObject[], document: JsonObject): Listing {
  const rows = keys.map((key) => ({ cells: [], name: textAt(key, 'metadata', 'name'), json: key }));
  return { heading: [], rows, document };
}

/** A Table of meta.k8s.io: columns with a priority are only in `wide`. */
function listingOfTable(table: JsonObject): Listing {
  const columns = objectsIn(table, 'columnDefinitions');
  const isShown = (isWide: boolean) => (_: unknown, index: number) =>
    ((columns[index]?.['priority'] ?? 0) !== 0) === isWide;
  const heads = columns.map((column) => textAt(column, 'name').toUpperCase());
  const rows = objectsIn(table, 'rows').map((row) => {
    const cells = (Array.isArray(row['cells']) ? row['cells'] : []).map(cellText);
    const json = objectIn(row);
    return {
      cells: cells.filter(isShown(false)),
      wideCells: cells.filter(isShown(true)),
      name: textAt(json, 'metadata', 'name'),
      json,
    };
  });
  return { heading: heads.filter(isShown(false)), wideHeading: heads.filter(isShown(true)), rows };
}

function cellText(cell: JsonValue): string {
  if (cell === null || cell === '') return '<none>';
  return typeof cell === 'string' ? cell : JSON.stringify(cell);
}

function objectIn(row: JsonObject): JsonObject {
  const { object } = row;
  return isJsonObject(object) ? object : {};
}

function objectsIn(object: JsonObject, field: string): JsonObject[] {
  const value = object[field];
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/** The list with the members that match `--expiring` or `--expired`, sorted by `--sort-by`. Without `--expired`, keys that have expired are hidden. */
function select(
  list: JsonObject,
  field: 'rows' | 'items',
  keyOf: (member: JsonObject) => JsonObject,
  { expiring, expired, sortBy }: ListOptions,
): JsonObject {
  const nowMs = Date.now();
  const [fromMs, untilMs] = expired
    ? [Number.NEGATIVE_INFINITY, nowMs]
    : [nowMs, expiring === undefined ? Number.POSITIVE_INFINITY : nowMs + expiring * 1000];
  let members = objectsIn(list, field).filter((member) => {
    const endMs = endOfKey(keyOf(member)) ?? Number.POSITIVE_INFINITY;
    return endMs > fromMs && endMs <= untilMs;
  });
  if (sortBy !== undefined) {
    requireField(members.map(keyOf), sortBy);
    const valueOf = (member: JsonObject): string | number => sortValue(keyOf(member), sortBy);
    members = members.toSorted((a, b) => compare(valueOf(a), valueOf(b)));
  }
  return { ...list, [field]: members };
}

const SORT_PATHS: Readonly<Record<string, string>> = {
  name: '.metadata.name',
  created: '.metadata.creationTimestamp',
  'last-activity': '.status.lastActivity',
};

const COMPUTED = ['expires', 'subject'];

/** Parser of `--sort-by`; throws for anything but these names and a path. */
function sortField(text: string): string {
  const names = [...Object.keys(SORT_PATHS), ...COMPUTED].toSorted();
  if (names.includes(text) || text.includes('.')) return text;
  throw new InvalidArgumentError(`Use a field such as .spec.ttl, or one of ${names.join(', ')}.`);
}

/** As kubectl does, a field that no key has is an error; it is probably misspelled. */
function requireField(keys: readonly JsonObject[], by: string): void {
  if (!by.includes('.') || keys.length === 0) return;
  if (keys.some((key) => valueAt(key, pathOf(by)) !== undefined)) return;
  throw new TerminalError(`--sort-by ${by}: none of the keys has this field; see keys list -o yaml`);
}

function pathOf(by: string): string[] {
  return (SORT_PATHS[by] ?? by).replaceAll(/[{}]/gu, '').split('.').filter(Boolean);
}

/** `by` is `expires`, `subject`, a name in {@link SORT_PATHS} or a field such as `.spec.ttl`. */
function sortValue(key: JsonObject, by: string): string | number {
  if (by === 'expires') return endOfKey(key) ?? Number.POSITIVE_INFINITY;
  if (by === 'subject') {
    return ['user', 'team', 'subject'].map((field) => textAt(key, 'spec', field)).find(Boolean) ?? '';
  }
  const value = valueAt(key, pathOf(by)) ?? '';
  return typeof value === 'number' || typeof value === 'string' ? value : JSON.stringify(value);
}

function compare(a: string | number, b: string | number): number {
  const [left, right] = typeof a === 'number' && typeof b === 'number' ? [a, b] : [String(a), String(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
