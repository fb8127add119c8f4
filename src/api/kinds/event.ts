/** Events: one storage, seen as core/v1 and as events.k8s.io/v1. */

import { isJsonObject, type JsonObject } from '../../lib/json.ts';
import { invalidValue, requiredValue, tooLong, unsupportedValue, type FieldError } from '../field-error.ts';
import { defineResource, type ResourceDefinition } from '../resource-definition.ts';
import type { TypeTable } from '../schema/notation.ts';
import { ageText, textColumn } from '../table.ts';
import { metadataOf, objectField, text } from '../validation/metadata.ts';
import { subdomainProblem } from '../validation/names.ts';

const STORAGE = 'events';

export function coreEvents(types: TypeTable): ResourceDefinition {
  return defineResource({
    group: '',
    version: 'v1',
    kind: 'Event',
    plural: 'events',
    singular: 'event',
    isNamespaced: true,
    shortNames: ['ev'],
    storage: STORAGE,
    schema: types.get('Event'),
    checkName: subdomainProblem,
    allowsCreateOnUpdate: true,
    selectableFields: selectable('involvedObject'),
    columns: columnsOf((object) => object),
    validate: namespaceErrors,
  });
}

export function groupEvents(types: TypeTable): ResourceDefinition {
  return defineResource({
    group: 'events.k8s.io',
    version: 'v1',
    kind: 'Event',
    plural: 'events',
    singular: 'event',
    isNamespaced: true,
    shortNames: ['ev'],
    storage: STORAGE,
    schema: types.get('events.Event'),
    checkName: subdomainProblem,
    allowsCreateOnUpdate: true,
    selectableFields: selectable('regarding'),
    columns: columnsOf(toCore),
    validate: (next, previous) => (previous ? updateErrors(next, previous) : createErrors(next)),
    view: { toStorage: toCore, fromStorage: fromCore },
  });
}

/** Names of fields that differ between the two views: events.k8s.io → core. */
const RENAMED: Readonly<Record<string, string>> = {
  reportingController: 'reportingComponent',
  regarding: 'involvedObject',
  note: 'message',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
};

/** In the order and with the always-written fields of core/v1. */
function toCore(object: JsonObject): JsonObject {
  const core: JsonObject = {};
  for (const key of Object.keys(object)) core[RENAMED[key] ?? key] = object[key] ?? null;
  core['involvedObject'] ??= {};
  core['source'] ??= {};
  core['firstTimestamp'] ??= null;
  core['lastTimestamp'] ??= null;
  core['eventTime'] ??= null;
  core['reportingComponent'] ??= '';
  core['reportingInstance'] ??= '';
  return core;
}

function fromCore(core: JsonObject): JsonObject {
  const object: JsonObject = {};
  const names = Object.fromEntries(Object.entries(RENAMED).map(([name, coreName]) => [coreName, name]));
  for (const key of Object.keys(core)) {
    const value = core[key] ?? null;
    const isAlwaysWritten = [
      'metadata',
      'eventTime',
      'involvedObject',
      'source',
      'firstTimestamp',
      'lastTimestamp',
    ].includes(key);
    if (value === '' && !isAlwaysWritten) continue;
    object[names[key] ?? key] = value;
  }
  return object;
}

function selectable(about: 'involvedObject' | 'regarding'): ResourceDefinition['selectableFields'] {
  const fields: Record<string, (object: JsonObject) => string> = {};
  for (const part of ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']) {
    fields[`${about}.${part}`] = (object) => text(objectField(object, about), part);
  }
  for (const part of ['reason', 'type']) fields[part] = (object) => text(object, part);
  const reporter = about === 'regarding' ? 'reportingController' : 'reportingComponent';
  fields[reporter] = (object) => text(object, reporter);
  const source = about === 'regarding' ? 'deprecatedSource' : 'source';
  fields['source'] = (object) => text(objectField(object, source), 'component') || text(object, reporter);
  return fields;
}

/** An Event lives where its object lives; of a cluster-scoped object, in `default`. */
function namespaceErrors(object: JsonObject): FieldError[] {
  const involved = text(objectField(object, 'involvedObject'), 'namespace');
  const own = text(metadataOf(object), 'namespace');
  if (involved === own || (involved === '' && ['', 'default', 'kube-system'].includes(own))) return [];
  return [invalidValue('involvedObject.namespace', involved, 'does not match event.namespace')];
}

const NOTE_BYTES_MAX = 1024;
const TEXT_BYTES_MAX = 128;

function createErrors(object: JsonObject): FieldError[] {
  const errors = namespaceErrors(toCore(object));
  if (object['eventTime'] === null || object['eventTime'] === undefined) {
    errors.push(requiredValue('eventTime'));
  }
  for (const field of ['reportingController', 'reportingInstance', 'action', 'reason']) {
    if (text(object, field) === '') errors.push(requiredValue(field));
    if (Buffer.byteLength(text(object, field)) > TEXT_BYTES_MAX) errors.push(tooLong(field, TEXT_BYTES_MAX));
  }
  if (Buffer.byteLength(text(object, 'note')) > NOTE_BYTES_MAX) errors.push(tooLong('note', NOTE_BYTES_MAX));
  const type = text(object, 'type');
  if (type !== 'Normal' && type !== 'Warning') {
    errors.push(unsupportedValue('type', type, ['Normal', 'Warning']));
  }
  return errors;
}

const FIXED = ['reason', 'note', 'type', 'action', 'reportingController', 'reportingInstance'];

/** Only the series of an Event may grow. */
function updateErrors(next: JsonObject, previous: JsonObject): FieldError[] {
  return FIXED.filter((field) => text(next, field) !== text(previous, field)).map((field) =>
    invalidValue(field, text(next, field), 'field is immutable'),
  );
}

function columnsOf(asCore: (object: JsonObject) => JsonObject): ResourceDefinition['columns'] {
  const column = (
    name: string,
    description: string,
    value: (core: JsonObject, nowMs: number) => string,
    priority = 0,
  ): ResourceDefinition['columns'][number] =>
    textColumn(name, description, (object, nowMs) => value(asCore(object), nowMs), priority);
  return [
    column('Last Seen', 'When it happened last.', (core, nowMs) => ageText(lastSeen(core), nowMs)),
    column('Type', 'Normal or Warning.', (core) => text(core, 'type')),
    column('Reason', 'A word for programs.', (core) => text(core, 'reason')),
    column('Object', 'What it happened to.', objectText),
    column(
      'Subobject',
      'The part it happened to.',
      (core) => text(objectField(core, 'involvedObject'), 'fieldPath'),
      1,
    ),
    column('Source', 'Who says so.', sourceText, 1),
    column('Message', 'A sentence for people.', (core) => text(core, 'message').trim()),
    column('First Seen', 'When it happened first.', (core, nowMs) => ageText(firstSeen(core), nowMs), 1),
    column('Count', 'How often.', (core) => String(countOf(core)), 1),
    {
      ...column('Name', 'The name of the Event.', (core) => text(metadataOf(core), 'name'), 1),
      format: 'name',
    },
  ];
}

function series(core: JsonObject): JsonObject | undefined {
  return isJsonObject(core['series']) ? core['series'] : undefined;
}

function firstSeen(core: JsonObject): string {
  return text(core, 'firstTimestamp') || text(core, 'eventTime');
}

function lastSeen(core: JsonObject): string {
  const repeated = series(core);
  return (repeated && text(repeated, 'lastObservedTime')) || text(core, 'lastTimestamp') || firstSeen(core);
}

function countOf(core: JsonObject): number {
  return Number(series(core)?.['count'] ?? core['count'] ?? 1) || 1;
}

function objectText(core: JsonObject): string {
  const involved = objectField(core, 'involvedObject');
  return `${text(involved, 'kind').toLowerCase()}/${text(involved, 'name')}`;
}

function sourceText(core: JsonObject): string {
  const source = objectField(core, 'source');
  const component = text(source, 'component') || text(core, 'reportingComponent');
  const host = text(source, 'host') || text(core, 'reportingInstance');
  return host === '' ? component : `${component}, ${host}`;
}
