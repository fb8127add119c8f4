/** `status`: every virtual object with its host name, its state and the reason. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { systemClock } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import { plainText } from '../../base/excerpt.ts';
import { parseLabelSelector, SelectorError, type LabelPredicate } from '../../kube/label-selector.ts';
import { keyOf } from '../../kube/object.ts';
import { addConfigOptions } from '../config-options.ts';
import { addVclusterOption, virtualNamespace, withConnection } from './hosted.ts';
import { tell, usageError, type ExitWith } from '../output/terminal.ts';
import { formatListing, outputOption, resourceName, type ListedRow } from '../output/listing.ts';
import type { LiveSync } from '../../syncer/rehearsal/live-sync.ts';

type StatusRow = Awaited<ReturnType<LiveSync['status']>>['rows'][number];

interface StatusFlags {
  readonly kind?: string;
  readonly namespace?: string | undefined;
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly output: string;
  readonly watch?: boolean;
  /** Also rows of skipped objects in tables. */
  readonly all?: boolean;
}

/** The interval of `--watch`. */
const INTERVAL_MS = 2000;
const HEADING = ['KIND', 'NAMESPACE', 'NAME', 'HOST', 'STATE', 'REASON', 'AGE'];

const ADDRESS_HEADING = ['ADDRESS', 'PORTS'];

export function define(command: Command, exitWith: ExitWith): void {
  command
    .option('-k, --kind <kind>', 'only objects of this kind')
    .option(
      '-l, --selector <selector>',
      'only virtual objects with these labels (app=web,release in (a,b),!x)',
    )
    .option('-A, --all-namespaces', 'all virtual namespaces, which is the default')
    .option('--all', 'list skipped objects in tables, too')
    .addOption(outputOption())
    .option('-w, --watch', 'keep running and print changed objects');
  addConfigOptions(command);
  addVclusterOption(command, true);
  command.action((flags: StatusFlags) => {
    const namespace = virtualNamespace(command);
    if (flags.allNamespaces === true && namespace !== undefined)
      command.error(`error: -A lists all virtual namespaces, and -n ${namespace} one: leave one out`, {
        exitCode: 2,
      });
    return exitWith(() => status(command, { ...flags, namespace }));
  });
}

async function status(command: Command, flags: StatusFlags): Promise<number> {
  const isSelected = selectorOf(flags);
  if (isSelected === undefined) return 2;
  return withConnection(command, async (sync) => {
    const problem = sync.kindProblem(flags.kind);
    if (problem !== undefined) return usageError(problem);
    // Only Services have addresses.
    const isAddressed = sync.config.services.mode === 'sync';
    const isTable = flags.output === 'table' || flags.output === 'wide';
    const print = (rows: readonly StatusRow[], isFirst: boolean): void => {
      const nowMs = systemClock.now();
      const listing = {
        heading: HEADING,
        wideHeading: [...(isAddressed ? ADDRESS_HEADING : []), 'WHY'],
        rows: rows.map((row) => listed(row, nowMs, isAddressed)),
      };
      const text = formatListing(listing, flags.output);
      process.stdout.write(!isFirst && isTable ? text.slice(text.indexOf('\n') + 1) : text);
    };
    const read = async () => {
      const { rows, ...world } = await sync.status(flags.kind);
      return { ...world, rows: rows.filter((row) => isChosen(row, flags) && isSelected(row.labels)) };
    };
    const { rows, pathsNeverMatched } = await read();
    const listedRows = isTable && flags.all !== true ? rows.filter((row) => !isSkipped(row)) : rows;
    print(listedRows, true);
    if (rows.length === 0) tell('no objects');
    const left = rows.length - listedRows.length;
    if (left > 0) tell(`${left} skipped ${left === 1 ? 'object is' : 'objects are'} not listed: see --all`);
    for (const path of pathsNeverMatched) tell(`note: ${plainText(path)}: no object has a match`);
    const again = async (): Promise<StatusRow[]> => (await read()).rows;
    if (flags.watch === true) await follow(rows, again, (changed) => print(changed, false));
    return 0;
  });
}

function isSkipped({ status: { state } }: StatusRow): boolean {
  return state === 'skipped';
}

function selectorOf({ selector = '' }: StatusFlags): LabelPredicate | undefined {
  try {
    return parseLabelSelector(selector);
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error;
    tell(`error: --selector ${JSON.stringify(selector)}: ${error.message}`);
    return undefined;
  }
}

/** Until interrupted: an API server may be restarted in the meantime. */
async function follow(
  first: readonly StatusRow[],
  read: () => Promise<StatusRow[]>,
  print: (rows: readonly StatusRow[]) => void,
): Promise<void> {
  const textOf = ({ labels: _labels, ...row }: StatusRow): string => JSON.stringify(row);
  let known = new Set(first.map(textOf));
  let reported = '';
  const reportOnce = (error: unknown): undefined => {
    if (!(error instanceof TerminalError)) throw error;
    if (error.message !== reported)
      tell(`warning: ${error.message}; the objects are read again every ${INTERVAL_MS / 1000} s`);
    reported = error.message;
  };
  for (;;) {
    await sleep(INTERVAL_MS);
    const rows = await read().catch(reportOnce);
    if (rows === undefined) continue;
    reported = '';
    const changed = rows.filter((row) => !known.has(textOf(row)));
    if (changed.length > 0) print(changed);
    known = new Set(rows.map(textOf));
  }
}

function isChosen({ virtual }: StatusRow, { namespace }: StatusFlags): boolean {
  return namespace === undefined || virtual.namespace === namespace;
}

function listed(
  { kind, group, virtual, host, status, address, lastChange }: StatusRow,
  nowMs: number,
  isAddressed: boolean,
): ListedRow {
  const { state, reason, sentence } = status;
  const { namespace, name } = virtual;
  const hostKey = host.name === '' ? '-' : keyOf(host);
  const served = [address?.addresses, address?.ports].map((texts = []) => texts.join(',') || '-');
  return {
    cells: [kind, namespace, name, hostKey, state, reason || '-', ageOf(lastChange, nowMs)],
    wideCells: [...(isAddressed ? served : []), sentence],
    name: resourceName(kind, group, name),
    json: { kind, virtual: { ...virtual }, host: { ...host }, state, reason, ...address, lastChange },
  };
}

const UNITS: readonly (readonly [unit: string, seconds: number])[] = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
];

/** As kubectl prints ages, in one unit. */
export function ageOf(time: string, nowMs: number): string {
  const seconds = Math.max(0, Math.floor((nowMs - Date.parse(time)) / 1000));
  if (Number.isNaN(seconds)) return '-';
  const [unit, size] = UNITS.find(([, length]) => seconds >= 2 * length) ?? ['s', 1];
  return `${Math.floor(seconds / size)}${unit}`;
}
