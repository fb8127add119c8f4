/** The tables of docs/reference.md, from what the program uses: `npm run reference -- --write`. Without `--write` it prints the page. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { issuedTokens, keySeries } from '../src/access-keys/metrics.ts';
import { ApiServerSeries, measuredStore } from '../src/apiserver/metrics.ts';
import { DefinitionTable } from '../src/apiserver/objects/resource-definition.ts';
import { MemoryStore } from '../src/apiserver/storage/revisioned-store.ts';
import { systemClock } from '../src/base/clock.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/base/json.ts';
import { leaderSeries, processSeries, requestSeries } from '../src/base/metrics/process-series.ts';
import { SeriesRegistry, type Description } from '../src/base/metrics/series.ts';
import { COMMANDS } from '../src/cli/program.ts';
import { FLAGS } from '../src/cli/config/flags.ts';
import { configJsonSchema } from '../src/cli/config/schema.ts';
import { fleetSeries } from '../src/fleet/members.ts';
import { BALANCER_KEYS } from '../src/syncer/kinds/load-balancers.ts';
import { controllerSeries, queueSeries } from '../src/syncer/metrics/metrics.ts';
import { informerSeries, syncSeries } from '../src/syncer/metrics/sync-series.ts';
import { ITERATIONS } from '../src/expressions/local/compile.ts';
import {
  CHANGING_METHODS,
  FUNCTIONS,
  LIST_METHODS,
  NUMBER_METHODS,
  TEXT_METHODS,
} from '../src/expressions/local/methods.ts';
import { PATTERN_METHODS } from '../src/expressions/local/patterns.ts';
import { PROGRAM_KEYS, PROGRAM_LABELS } from '../src/syncer/references/refusals.ts';
import { refusalRows } from '../src/expressions/front-end/scope.ts';

const PAGE = join(import.meta.dirname, '..', 'docs', 'reference.md');

/** The page with its generated tables up to date. Each is between `<!-- NAME -->` and `<!-- end -->`. */
export function reference(page = readFileSync(PAGE, 'utf8')): string {
  const tables: Readonly<Record<string, () => readonly string[]>> = {
    commands: commandRows,
    configuration: configurationRows,
    patch: () => fieldRows(definition('Patch')),
    reference: () => fieldRows(definition('Reference')),
    watched: () => metricRows((rank) => rank === 0),
    metrics: () => metricRows((rank) => rank === 1),
    usual: usualSeries,
    refused: refusedRows,
    local: localRows,
    balancers: () => programRows(BALANCER_KEYS.filter(({ is }) => is === 'choice')),
    programs: () => programRows(PROGRAM_KEYS),
    labels: labelRows,
  };
  const lost = Object.keys(tables).filter((name) => !page.includes(`<!-- ${name} -->\n`));
  if (lost.length > 0) throw new Error(`docs/reference.md has no place for the tables ${lost.join(', ')}`);
  return page.replaceAll(
    /(<!-- (\w+) -->\n)[^]*?(<!-- end -->)/gu,
    (_, begin: string, name: string, end: string) => {
      const rows = tables[name];
      if (rows === undefined) throw new Error(`docs/reference.md: there is no table "${name}"`);
      return `${begin}${rows().join('\n')}\n${end}`;
    },
  );
}

function commandRows(): string[] {
  const rows = COMMANDS.map(({ name, summary }) => `| \`${name}\` | ${cell(summary)} |`);
  return ['| command | description |', '|---|---|', ...rows];
}

const SCHEMA = JSON.parse(configJsonSchema()) as JsonObject; // our own schema

function definition(name: string): JsonObject {
  return child(child(SCHEMA, 'definitions'), name);
}

function configurationRows(): string[] {
  const kinds = kindSettings();
  const rows = settings(SCHEMA, '').filter(([name]) => !kinds.some((kind) => kind.name === name));
  const list = (isOn: boolean): string =>
    kinds
      .filter(({ field }) => (field['default'] === true) === isOn)
      .map(({ kind }) => `\`${kind}\``)
      .join(', ');
  const meaning = `Whether this kind is synced to the host. \`true\` by default for ${list(true)}; \`false\` for ${list(false)}.`;
  const at = rows.findIndex(([name]) => name === 'sync.toHost.customResources');
  return [
    '| field | default, or type | description |',
    '|---|---|---|',
    ...rows.toSpliced(at, 0, ['sync.toHost.KIND.enabled', 'boolean', meaning]).map(asRow),
  ];
}

type SettingRow = readonly [name: string, value: string, description: string];

function asRow([name, ...cells]: SettingRow): string {
  return `| \`${name}\` | ${cells.join(' | ')} |`;
}

/** The kinds with a switch of the same description, which differ in their name and default alone. They are one row. */
function kindSettings(): { kind: string; name: string; field: JsonObject }[] {
  const toHost = child(child(child(child(SCHEMA, 'properties'), 'sync'), 'properties'), 'toHost');
  const all = Object.keys(child(toHost, 'properties')).map((kind) => ({
    kind,
    name: `sync.toHost.${kind}.enabled`,
    field: child(child(child(child(toHost, 'properties'), kind), 'properties'), 'enabled'),
  }));
  const [text] = all.filter(({ kind }) => kind === 'secrets').map(({ field }) => description(field));
  return all.filter(({ field }) => description(field) === text);
}

/** One row for each field that holds a value. */
function settings(schema: JsonObject, path: string): SettingRow[] {
  return Object.keys(child(schema, 'properties')).flatMap((key) => {
    const field = child(child(schema, 'properties'), key);
    const name = path === '' ? key : `${path}.${key}`;
    // Its fields are those of `endpointSyncer` again.
    if (name === 'endpointSyncer.defaults') return [[name, '`{}`', description(field)] as const];
    if (Object.keys(child(field, 'properties')).length > 0) return settings(field, name);
    const flag = FLAG_OF_FIELD.get(name);
    const text = [description(field), flag === undefined ? '' : `\`--${flag}\``].filter(Boolean).join(' ');
    return [[name, valueOf(field), text] as const];
  });
}

const FLAG_OF_FIELD = new Map(
  FLAGS.filter(({ shownBy }) => shownBy !== 'none').map(({ section, field, flag }) => [
    `${section}.${field}`,
    flag,
  ]),
);

function fieldRows(schema: JsonObject): string[] {
  const rows = Object.entries(child(schema, 'properties')).map(([name, field]) =>
    isJsonObject(field) ? `| \`${name}\` | ${typeOf(field)} | ${description(field)} |` : '',
  );
  return ['| field | type | description |', '|---|---|---|', ...rows];
}

function typeOf(field: JsonObject): string {
  if (Array.isArray(field['enum']))
    return field['enum'].map((word) => `\`${cell(JSON.stringify(word).replaceAll('"', ''))}\``).join(', ');
  if (typeof field['type'] === 'string') return field['type'];
  const forms = Array.isArray(field['anyOf']) ? field['anyOf'].filter(isJsonObject) : [];
  return [...new Set(forms.map(({ type }) => (typeof type === 'string' ? type : 'string')))].join(' or ');
}

/** The default, before the other words that a field may have; the type of a field without a default. */
function valueOf(field: JsonObject): string {
  const value = field['default'];
  if (value === undefined || value === '') return typeOf(field);
  const others = Array.isArray(field['enum']) ? field['enum'].filter((word) => word !== value) : [];
  return [value, ...others].map((each) => `\`${cell(JSON.stringify(each))}\``).join(', ');
}

function description(field: JsonObject): string {
  return typeof field['description'] === 'string' ? cell(field['description']) : '';
}

/** Those of a rank, see `rankOf`. */
function metricRows(isListed: (rank: number) => boolean): string[] {
  const rows = describedSeries()
    .filter((described) => isListed(rankOf(described)))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((described) => `| \`${seriesOf(described)}\` | ${described.type} | ${cell(described.help)} |`);
  return ['| series | type | meaning |', '|---|---|---|', ...rows];
}

/** One line: what these measure is the same in every program that has them. */
function usualSeries(): string[] {
  const names = describedSeries()
    .filter((described) => rankOf(described) === 2)
    .map((described) => `\`${seriesOf(described)}\``);
  return [`${names.toSorted().join(', ')}.`];
}

function seriesOf({ name, labels = [] }: Described): string {
  return labels.length === 0 ? name : `${name}{${labels.join(',')}}`;
}

function describedSeries(): readonly Described[] {
  const registry = new DescribedRegistry();
  queueSeries(registry, () => 0);
  requestSeries(registry);
  informerSeries(registry);
  leaderSeries(registry);
  controllerSeries(registry, syncSeries(registry));
  fleetSeries(registry, () => []);
  processSeries(registry, '');
  keySeries(registry, { all: () => [], expiresAtMs: () => undefined, unconfirmedMs: 0 }, systemClock);
  issuedTokens(registry);
  new ApiServerSeries(registry, new DefinitionTable([]));
  measuredStore(new MemoryStore(), systemClock, registry);
  return registry.described;
}

type Described = Description & { readonly type: string };

const WATCHED = ['alerts.yaml', 'dashboard.json']
  .map((file) => readFileSync(new URL(`../charts/endpoint-syncer/files/${file}`, import.meta.url), 'utf8'))
  .join('');

/** What alerts and the dashboard use comes first, then our own series, then the usual ones. */
function rankOf({ name }: Described): number {
  if (new RegExp(`\\b${name}(?:_bucket)?\\b`, 'u').test(WATCHED)) return 0;
  return name.startsWith('endpoint_syncer_') ? 1 : 2;
}

/** One row for each reason. */
function refusedRows(): string[] {
  const cells = refusalRows().map((row) => /^\| (.*?) \| (.*) \|$/u.exec(row)?.slice(1) ?? []);
  const rows = [...Map.groupBy(cells, ([, reason = '']) => reason)].map(
    ([reason, group]) => `| ${group.map(([name = '']) => name).join(', ')} | ${reason} |`,
  );
  return ['| refused | because |', '|---|---|', ...rows];
}

function localRows(): string[] {
  const list = (names: Iterable<string>): string =>
    [...names]
      .toSorted((a, b) => (a < b ? -1 : 1))
      .map((name) => `\`${name}\``)
      .join(', ');
  return [
    '| of | evaluated in the daemon |',
    '|---|---|',
    `| a text | ${list(TEXT_METHODS.keys())} |`,
    `| a text, with a regular expression | ${list(PATTERN_METHODS.keys())} |`,
    `| a regular expression | \`test\` |`,
    `| a list | ${list(new Set([...LIST_METHODS.keys(), ...CHANGING_METHODS.keys()]))} |`,
    `| a list, with an arrow function | ${list(ITERATIONS.keys())} |`,
    `| a number | ${list(NUMBER_METHODS.keys())} |`,
    `| functions | ${list([...FUNCTIONS.keys(), 'Object.assign'])} |`,
  ];
}

interface KeyOfProgram {
  readonly program: string;
  /** A key that ends in `/` stands for every key with this prefix. */
  readonly key: string;
  readonly value?: string;
}

/** One row for each program. */
function programRows(keys: readonly KeyOfProgram[]): string[] {
  const rows = [...Map.groupBy(keys, ({ program }) => program)].map(
    ([program, group]) => `| ${program} | ${group.map(nameOfKey).join(', ')} |`,
  );
  return ['| program | labels and annotations |', '|---|---|', ...rows];
}

function labelRows(): string[] {
  const rows = PROGRAM_LABELS.map((label) => {
    const direction = label.isPrivate ? 'in either direction' : 'into the host';
    return `| ${nameOfKey(label)} | ${label.program} | ${direction} |`;
  });
  return ['| label | program | not copied |', '|---|---|---|', ...rows];
}

function nameOfKey({ key, value }: KeyOfProgram): string {
  return `\`${key}${key.endsWith('/') ? '*' : ''}${value === undefined ? '' : `=${value}`}\``;
}

/** Records what is registered. */
class DescribedRegistry extends SeriesRegistry {
  readonly described: Described[] = [];

  override counter(description: Description): ReturnType<SeriesRegistry['counter']> {
    this.described.push({ ...description, type: 'counter' });
    return super.counter(description);
  }

  override gauge(description: Description, refresh?: () => void): ReturnType<SeriesRegistry['gauge']> {
    this.described.push({ ...description, type: 'gauge' });
    return super.gauge(description, refresh);
  }

  override readCounter(description: Description, read: () => number): void {
    this.described.push({ ...description, type: 'counter' });
    super.readCounter(description, read);
  }

  override histogram(
    description: Parameters<SeriesRegistry['histogram']>[0],
  ): ReturnType<SeriesRegistry['histogram']> {
    this.described.push({ ...description, type: 'histogram' });
    return super.histogram(description);
  }
}

function child(object: JsonObject, key: string): JsonObject {
  const value: JsonValue | undefined = object[key];
  return isJsonObject(value) ? value : {};
}

/** In a table, a bar ends a cell, and what looks like a tag is one. */
function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replaceAll(/<(\w+)>/gu, '&lt;$1&gt;');
}

if (import.meta.main) {
  if (process.argv.includes('--write')) writeFileSync(PAGE, reference());
  else process.stdout.write(reference());
}
