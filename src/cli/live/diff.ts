/** `diff`: what a sync would change on either side, as `kubectl diff` prints it. */

import { plainLines, plainText } from '../../base/excerpt.ts';
import type { Command } from 'commander';
import { unifiedHunks } from '../../base/unified-diff.ts';
import { apiVersionOf, asJson, objectKey, type KubeObject, SECRETS, SERVER_SET } from '../../kube/object.ts';
import { addConfigOptions } from '../config-options.ts';
import { addVclusterOption, withConnection } from './hosted.ts';
import {
  type ExitWith,
  describeFailure,
  type Paint,
  paintFor,
  tell,
  usageError,
} from '../output/terminal.ts';
import { printObject } from '../output/objects.ts';
import { withoutBookkeeping } from '../../syncer/translate/bookkeeping.ts';
import type { LiveSync } from '../../syncer/rehearsal/live-sync.ts';
import { nameProblem } from './name-arguments.ts';
import { describeTermination } from '../../kube/termination.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json.ts';

type Differences = Awaited<ReturnType<LiveSync['differences']>>;
type Change = Differences['changes'][number];

interface DiffFlags {
  readonly kind?: string;
  readonly showBookkeeping?: boolean;
}

/** 1 means that there are differences. */
const ERROR = 2;

export function define(command: Command, exitWith: ExitWith): void {
  command
    .argument('[names...]', 'NAMESPACE/NAME of virtual objects; default: all objects')
    .option('-k, --kind <kind>', 'only objects of this kind')
    .option('--show-bookkeeping', 'also show the annotations and labels that mark the copies');
  addConfigOptions(command);
  addVclusterOption(command);
  command.action((names: string[], flags: DiffFlags) => {
    const problem = nameProblem(names);
    if (problem !== undefined) command.error(`error: ${problem}`, { exitCode: 2 });
    return exitWith(() => withConnection(command, (sync) => diff(sync, names, flags)), ERROR);
  });
}

async function diff(sync: LiveSync, names: readonly string[], flags: DiffFlags): Promise<number> {
  const problem = sync.kindProblem(flags.kind);
  if (problem !== undefined) return usageError(problem);
  const found = await sync.differences(names, flags.kind);
  const { unknown } = found;
  for (const object of unknown) tell(`error: ${object} exists in neither cluster`);
  for (const { resource, key, error, note } of found.failed)
    tell(`failed ${resource.kind} ${key}: ${note ?? describeFailure(error)}`);
  const { runsOther } = await sync.readDaemon();
  if (runsOther) tell('note: the daemon runs another configuration, so it does not make these changes');
  if (found.objection !== undefined)
    tell(`note: copies of objects that are gone are not deleted: ${found.objection}`);
  noteCopiesLeft(found);
  for (const { what, object } of found.ending)
    tell(`note: ${what} "${objectKey(object)}" ${describeTermination(object)}`);
  const paint = paintFor(process.stdout);
  const texts = found.changes.flatMap(
    (change) => formatChange(change, flags.showBookkeeping === true, paint) ?? [],
  );
  process.stdout.write(texts.join(''));
  if (unknown.length > 0 || found.failed.length > 0) return ERROR;
  return texts.length > 0 ? 1 : 0;
}

/** Copies that this configuration no longer updates. They stay as they are, so they are no difference. */
function noteCopiesLeft({ copiesLeft }: Differences): void {
  const note = (count: number, kind: string, what: string): void => {
    const copies = `${count} ${kind} ${count === 1 ? 'copy' : 'copies'}`;
    if (count > 0) tell(`note: this configuration does not update ${copies} of ${what}`);
  };
  for (const { kind, own, others, setting } of copiesLeft) {
    note(own, kind, 'this program on the host; "endpoint-syncer cleanup --unused" removes what is not used');
    note(others, kind, `another syncer on the host; unless vCluster does, set ${setting} to true`);
  }
}

/** Undefined if the shown parts are equal. */
export function formatChange(change: Change, isBookkeepingShown: boolean, paint: Paint): string | undefined {
  const shown = (object: KubeObject | undefined): KubeObject | undefined =>
    object && withoutServerSet(isBookkeepingShown ? object : withoutBookkeeping(object));
  const [before, after] = [shown(change.before), shown(change.after)];
  const isSecret = change.resource.kind === SECRETS.kind;
  const texts = [
    isSecret && before ? masked(before, after, `${MASK} (before)`) : before,
    isSecret && after ? masked(after, before, `${MASK} (after)`) : after,
  ].map(textOf);
  const hunks = plainLines(unifiedHunks(texts[0] ?? '', texts[1] ?? ''));
  if (hunks === '') return undefined;
  const file = fileNameOf(change);
  const lines = `diff -u -N LIVE/${file} MERGED/${file}\n--- LIVE/${file}\n+++ MERGED/${file}\n`;
  return lines + hunks.replaceAll(/^[-+@].*$/gmu, (line) => colour(line, paint));
}

function colour(line: string, paint: Paint): string {
  if (line.startsWith('@')) return paint.dim(line);
  return line.startsWith('+') ? paint.green(line) : paint.red(line);
}

/** As kubectl names them, below the name of the cluster. */
function fileNameOf({ cluster, resource, before, after }: Change): string {
  const { namespace = '', name = '' } = (after ?? before)?.metadata ?? {};
  const version = apiVersionOf(resource).split('/').toReversed().join('.');
  return plainText(`${cluster}/${version}.${resource.kind}.${namespace}.${name}`);
}

/** They are on one side only and say nothing about the sync. */
function withoutServerSet(object: KubeObject): KubeObject {
  const metadata = { ...object.metadata };
  for (const member of SERVER_SET) delete metadata[member];
  return { ...object, metadata };
}

function textOf(object: KubeObject | undefined): string {
  return object === undefined ? '' : printObject(asJson(object), 'yaml', { isSorted: true });
}

/** Contains the object as kubectl applied it, including its data. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const MASK = '***';

/** Equal values get the same mask on both sides; `changed` replaces those that differ. */
function masked(object: KubeObject, other: KubeObject | undefined, changed: string): KubeObject {
  const result: KubeObject = { ...object };
  for (const member of ['data', 'stringData']) {
    const [values, others] = [mapOf(object[member]), mapOf(other?.[member]) ?? {}];
    const isChanged = (key: string, value: JsonValue | undefined): boolean =>
      Object.hasOwn(others, key) && others[key] !== value;
    if (values !== undefined)
      result[member] = Object.fromEntries(
        Object.entries(values).map(([key, value]) => [key, isChanged(key, value) ? changed : MASK]),
      );
  }
  const { annotations } = object.metadata;
  if (annotations?.[LAST_APPLIED] !== undefined)
    result.metadata = { ...object.metadata, annotations: { ...annotations, [LAST_APPLIED]: MASK } };
  return result;
}

function mapOf(value: KubeObject[string]): JsonObject | undefined {
  const json = value as JsonValue | undefined; // data is below metadata
  return isJsonObject(json) ? json : undefined;
}
