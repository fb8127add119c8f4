/** Output formats of lists, as in kubectl: table, wide, name, JSON, YAML, JSONPath template. */

import { plainText, printableJson } from '../../base/excerpt.ts';
import { InvalidArgumentError, Option } from 'commander';
import { writeYaml } from '../../base/yaml/write.ts';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import { TerminalError } from '../../base/errors.ts';
import { applyTemplate } from './template.ts';
import { parseTemplate } from './template-syntax.ts';

export interface Listing {
  readonly heading: readonly string[];
  readonly wideHeading?: readonly string[];
  readonly rows: readonly ListedRow[];
  /** The value that `json`, `yaml` and `jsonpath` print. Default: an array with the JSON of each row. */
  readonly document?: JsonValue;
}

export interface ListedRow {
  readonly cells: readonly string[];
  readonly wideCells?: readonly string[];
  readonly name: string;
  readonly json: JsonObject;
}

const FORMATS = ['table', 'wide', 'name', 'json', 'yaml'];
const JSON_PATH = 'jsonpath=';

/** The option `-o, --output`; an unknown format is a usage error. `prefix` begins its description. */
export function outputOption(prefix = ''): Option {
  const formats = `${FORMATS.join(', ')} or ${JSON_PATH}TEMPLATE`;
  const option = new Option('-o, --output <format>', `${prefix}${formats}`);
  return option.default('table').argParser((text) => {
    if (FORMATS.includes(text)) return text;
    if (!text.startsWith(JSON_PATH))
      throw new InvalidArgumentError(`Allowed choices are ${FORMATS.join(', ')}, ${JSON_PATH}TEMPLATE.`);
    checkTemplate(text.slice(JSON_PATH.length));
    return text;
  });
}

function checkTemplate(template: string): void {
  if (template === '') throw new InvalidArgumentError(`${JSON_PATH} has no template.`);
  try {
    parseTemplate(template);
  } catch (error) {
    if (!(error instanceof TerminalError)) throw error;
    throw new InvalidArgumentError(`${error.message}.`);
  }
}

/** The option `-o, --output` of a command that prints no list; the first format is the default. */
export function formatOption(
  formats: readonly [string, ...string[]],
  help = `${formats.slice(0, -1).join(', ')} or ${formats.at(-1)}`,
): Option {
  return new Option('-o, --output <format>', help).choices(formats).default(formats[0]);
}

export function formatListing(listing: Listing, format: string): string {
  const { rows } = listing;
  const json = listing.document ?? rows.map((row) => row.json);
  switch (format) {
    case 'name':
      return rows.map(({ name }) => `${plainText(name)}\n`).join('');
    case 'table':
    case 'wide':
      return tableOf(listing, format === 'wide');
    default:
      return formatJson(json, format);
  }
}

/** What kubectl prints with `-o name`: `endpoints/web`, `endpointslice.discovery.k8s.io/web-1`. */
export function resourceName(kind: string, group: string, name: string): string {
  return `${kind.toLowerCase()}${group === '' ? '' : `.${group}`}/${name}`;
}

/** A value in one of the formats `json`, `yaml` and `jsonpath=TEMPLATE`. */
export function formatJson(json: JsonValue, format: string): string {
  if (format === 'json') return `${printableJson(json)}\n`;
  if (format === 'yaml') return writeYaml(json);
  return applyTemplate(format.slice(JSON_PATH.length), json);
}

function tableOf({ heading, wideHeading = [], rows }: Listing, isWide: boolean): string {
  if (rows.length === 0) return '';
  const more = (cells: readonly string[] = []): readonly string[] => (isWide ? cells : []);
  return formatTable([
    [...heading, ...more(wideHeading)],
    ...rows.map(({ cells, wideCells }) => [...cells, ...more(wideCells)]),
  ]);
}

/** The first row is the heading. The last column is not padded. Control characters are escaped. */
export function formatTable(table: readonly (readonly string[])[]): string {
  const rows = table.map((row) => row.map((cell) => plainText(cell.replaceAll(/[\r\n\t]+/gu, ' '))));
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  return rows
    .map((row) => {
      const last = row.length - 1;
      return `${row.map((cell, column) => (column === last ? cell : cell.padEnd(widths[column] ?? 0))).join('   ')}\n`;
    })
    .join('');
}
