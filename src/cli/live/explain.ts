/** `explain`: why one object is, or is not, synced, and what each stage of a sync does with it. */

import type { Command } from 'commander';
import type { JsonObject, JsonValue } from '../../base/json.ts';
import type { NamespacedName } from '../../kube/object.ts';
import { addConfigOptions } from '../config-options.ts';
import { addVclusterOption, withConnection } from './hosted.ts';
import type { ExitWith } from '../output/terminal.ts';
import { plainText, printableJson } from '../../base/excerpt.ts';
import { formatJson, formatTable, formatOption } from '../output/listing.ts';
import type { Explanation, LiveSync } from '../../syncer/rehearsal/live-sync.ts';
import { nameProblem } from './name-arguments.ts';
import { ageOf } from './status.ts';

type Stages = NonNullable<Explanation['stages']>;

interface ExplainFlags {
  readonly host?: boolean;
  readonly kind?: string;
  readonly output: 'text' | 'json' | 'yaml';
}

export function define(command: Command, exitWith: ExitWith): void {
  command
    .argument(
      '<name>',
      'NAMESPACE/NAME of a virtual object (with --host: of a host object, or its NAME alone)',
    )
    .option('--host', 'the name is a host name')
    .option(
      '-k, --kind <kind>',
      'kind of the object, or KIND.GROUP, if objects of several kinds have the name',
    )
    .addOption(formatOption(['text', 'json', 'yaml']));
  addConfigOptions(command);
  addVclusterOption(command);
  command.action((name: string, flags: ExplainFlags) => {
    const isNameAlone = flags.host === true && !name.includes('/');
    const problem = isNameAlone ? undefined : nameProblem([name]);
    if (problem !== undefined) command.error(`error: ${problem}`, { exitCode: 2 });
    return exitWith(() => withConnection(command, (sync) => explain(sync, name, flags)));
  });
}

async function explain(
  sync: LiveSync,
  name: string,
  { host: isHost = false, kind, output }: ExplainFlags,
): Promise<number> {
  const explanation = await sync.explain(name, { isHost, kind });
  if ('unreadableWithout' in explanation) {
    const sentence = `nothing is synced: rights are missing: ${explanation.unreadableWithout.join(', ')}`;
    const json = { state: 'failed', reason: 'MissingRight', sentence };
    process.stdout.write(output === 'text' ? `${sentence}\n` : formatJson(json, output));
    return 1;
  }
  process.stdout.write(
    output === 'text' ? formatExplanation(explanation) : formatJson(asJsonObject(explanation), output),
  );
  return explanation.status.reason === 'ReferenceNotFound' ? 1 : 0;
}

function asJsonObject(explanation: Explanation): JsonObject {
  const { kind, virtual, host, status, address, stages, write, events, lease } = explanation;
  const named = ({ namespace, name }: NamespacedName): JsonObject => ({ namespace, name });
  const reported = events.map(({ lastMs, ...event }) => ({ ...event, last: new Date(lastMs).toISOString() }));
  return {
    kind,
    virtual: named(virtual),
    host: named(host),
    ...status,
    ...address,
    stages: stages ?? { write },
    events: reported,
    lease: lease === undefined ? null : { name: lease.key, holder: lease.holder },
  };
}

// An explanation as text: the sentence that answers "why", then the stages.

const EVENTS_MAX = 5;

function formatExplanation(explanation: Explanation): string {
  const { status, address, stages, write, events, lease, nowMs } = explanation;
  const rows: string[][] = [];
  const add = (stage: string, lines: readonly string[]): void => {
    for (const [at, line] of lines.entries()) rows.push([at === 0 ? stage : '', line]);
  };
  if (stages !== undefined) addStages(stages, status.sentence, add);
  add('write', write.length === 0 ? ['nothing to write'] : write.map(writeLine));
  if (address !== undefined) add('address', [addressLine(address)]);
  if (lease !== undefined)
    add('leader', [lease.holder === '' ? `no replica holds Lease ${lease.key}` : lease.holder]);
  // The first sentence is that of the newest Event with its reason.
  const told = events.find(({ reason }) => reason === status.reason);
  const others = events.filter((event) => event !== told).map((event) => eventLine(event, nowMs));
  add('events', others.slice(0, EVENTS_MAX));
  return `${plainText(capital(status.sentence))}.\n\n${formatTable(rows)}`;
}

/** With its age, because what it reports may be over. Events have the line breaks of a note escaped. */
function eventLine({ reason, note, lastMs }: Explanation['events'][number], nowMs: number): string {
  const age = ageOf(new Date(lastMs).toISOString(), nowMs);
  return `${reason} ${age} ago: ${note.split(/\n|\\u000a/u)[0] ?? ''}`;
}

function addStages(
  stages: Stages,
  sentence: string,
  add: (stage: string, lines: readonly string[]) => void,
): void {
  add('gate', [stages.gate.detail]);
  add('name', [stages.name.detail]);
  add('translation', stages.translation);
  for (const patch of stages.patches) add(`patches[${patch.index}]`, patchLines(patch, sentence));
  add('merge', stages.merge.map(mergeLine));
}

function patchLines(
  { direction, path, matches, nearest, error, action }: Stages['patches'][number],
  sentence: string,
): string[] {
  const back = direction === 'toVirtual' ? ' (host to virtual)' : '';
  if (error !== null) {
    const [message = '', ...excerpt] = error.split('\n');
    return [sentence.includes(message) ? `${path}: fails${back}` : message, ...excerpt];
  }
  if (matches.length === 0) {
    const exists = nearest === null || nearest === '' ? '' : `; ${nearest} exists`;
    return [`${path}: no match${exists}${back}`];
  }
  if (action === 'keep') return matches.map((match) => `${match.path}: not synced in this direction${back}`);
  return matches.map((match) => `${match.path}: ${value(match.before)} -> ${value(match.after)}${back}`);
}

function mergeLine({ path, winner, before, after }: Stages['merge'][number]): string {
  const other = winner === 'virtual' ? 'host' : 'virtual object';
  const side = winner === 'virtual' ? 'the virtual object' : 'the host';
  return `${path}: ${side} wins; on the ${other} ${value(before)} -> ${value(after)}`;
}

function writeLine({ cluster, verb, kind, object, reason }: Stages['write'][number]): string {
  return `${verb} ${kind} ${object} in the ${cluster} cluster: ${reason}`;
}

function addressLine({ addresses, ports }: NonNullable<Explanation['address']>): string {
  const served = ports.length === 0 ? '' : `, ports ${ports.join(', ')}`;
  return `${addresses.length === 0 ? 'no address' : addresses.join(', ')}${served}`;
}

const VALUE_MAX = 100;

function value(json: JsonValue): string {
  const text = json === null ? 'nothing' : printableJson(json, 0);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX - 1)}…` : text;
}

function capital(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
