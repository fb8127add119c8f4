/** Events: one storage, served as core/v1 and as events.k8s.io/v1. */

import { metadataOf } from '../kube/object.ts';
import { isJsonObject, type JsonObject, numberField, objectField, text } from '../base/json.ts';
import { invalidValue, requiredValue, tooLong, type FieldError } from './status.ts';
import { defineResource, type ResourceDefinition } from './objects/resource-definition.ts';
import type { ObjectSchema, TypeTable } from './schema/object-schema.ts';
import { ageText, textColumn } from './objects/object-view.ts';
import { subdomainProblem } from '../kube/names.ts';

const STORAGE = 'events';

function eventKind(
  group: string,
  schema: ObjectSchema,
  behaviour: Partial<Omit<ResourceDefinition, 'strategy'>>,
): ResourceDefinition {
  return defineResource({
    group,
    version: 'v1',
    kind: 'Event',
    plural: 'events',
    singular: 'event',
    isNamespaced: true,
    shortNames: ['ev'],
    storage: STORAGE,
    schema,
    checkName: subdomainProblem,
    strategy: { allowsCreateOnUpdate: true },
    ...behaviour,
  });
}

export function coreEvents(types: TypeTable): ResourceDefinition {
  return eventKind('', types.get('Event'), {
    selectableFields: selectable('involvedObject'),
    columns: columnsOf((object) => object),
    validate: (next, previous) => eventErrors(next, previous, 'reportingComponent'),
  });
}

export function groupEvents(types: TypeTable): ResourceDefinition {
  return eventKind('events.k8s.io', types.get('events.Event'), {
    selectableFields: selectable('regarding'),
    columns: columnsOf(toCore),
    validate: (next, previous) => groupEventErrors(toCore(next), previous && toCore(previous)),
    view: { validationGroup: '', toStorage: toCore, fromStorage: fromCore },
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

const NOTE_BYTES_MAX = 1024;
const TEXT_BYTES_MAX = 128;

/** Both arguments are in the form of core/v1, whose field names a kube-apiserver uses for both groups. */
function eventErrors(event: JsonObject, previous: JsonObject | undefined, reporter: string): FieldError[] {
  const involved = text(objectField(event, 'involvedObject'), 'namespace');
  const own = text(metadataOf(event), 'namespace');
  const isElsewhere = involved !== own && !(involved === '' && own === 'default');
  const errors = isElsewhere
    ? [invalidValue('involvedObject.namespace', involved, 'does not match event.namespace')]
    : [];
  if (previous || typeof event['eventTime'] !== 'string') return errors;
  // The fields of new-style Events, which have a time in microseconds.
  const values = { [reporter]: 'reportingComponent', reportingInstance: '', action: '', reason: '' };
  for (const [field, name] of Object.entries(values)) {
    const value = text(event, name || field);
    if (value === '') errors.push(requiredValue(field));
    if (Buffer.byteLength(value) > TEXT_BYTES_MAX) errors.push(tooLong(field, TEXT_BYTES_MAX));
  }
  if (Buffer.byteLength(text(event, 'message')) > NOTE_BYTES_MAX) {
    errors.push(tooLong('message', NOTE_BYTES_MAX));
  }
  return errors;
}

const FIXED = ['reason', 'message', 'type', 'action', 'reportingComponent', 'reportingInstance'];

function groupEventErrors(event: JsonObject, previous: JsonObject | undefined): FieldError[] {
  const errors = eventErrors(event, previous, 'reportingController');
  if (previous) {
    const changed = FIXED.filter((field) => text(event, field) !== text(previous, field));
    return [
      ...errors,
      ...changed.map((field) => invalidValue(field, text(event, field), 'field is immutable')),
    ];
  }
  if (typeof event['eventTime'] !== 'string') errors.push(requiredValue('eventTime'));
  const type = text(event, 'type');
  if (type !== 'Normal' && type !== 'Warning') {
    errors.push(invalidValue('type', '', `has invalid value: ${type}`));
  }
  return errors;
}

function columnsOf(asCore: (object: JsonObject) => JsonObject): ResourceDefinition['columns'] {
  const column = (
    name: string,
    description: string,
    value: (core: JsonObject, nowMs: number) => string | number,
    priority = 0,
  ): ResourceDefinition['columns'][number] =>
    textColumn(name, description, (object, nowMs) => value(asCore(object), nowMs), priority);
  return [
    column('Last Seen', 'The time of the last occurrence.', (core, nowMs) => ageText(lastSeen(core), nowMs)),
    column('Type', 'Normal or Warning.', (core) => text(core, 'type')),
    column('Reason', 'A machine-readable reason.', (core) => text(core, 'reason')),
    column('Object', 'The object of the event.', objectText),
    column(
      'Subobject',
      'The part of the object.',
      (core) => text(objectField(core, 'involvedObject'), 'fieldPath'),
      1,
    ),
    column('Source', 'The component that reported the event.', sourceText, 1),
    column('Message', 'A human-readable message.', (core) => text(core, 'message').trim()),
    column(
      'First Seen',
      'The time of the first occurrence.',
      (core, nowMs) => ageText(firstSeen(core), nowMs),
      1,
    ),
    column('Count', 'The number of occurrences.', countOf, 1),
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
  return numberField(objectField(core, 'series'), 'count', numberField(core, 'count')) || 1;
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

/** The types of both. Notation: `schema/object-schema.ts`. */
export const EVENT_TYPES = `
ObjectReference atomic = kind:1 string; namespace:2 string; name:3 string; uid:4 string:types.UID; apiVersion:5 string; resourceVersion:6 string; fieldPath:7 string
Event = metadata:1!+ meta.ObjectMeta; involvedObject:2!+ ObjectReference; reason:3 string; message:4 string; source:5! EventSource; firstTimestamp:6! time; lastTimestamp:7! time; count:8 int32; type:9 string; eventTime:10! microtime; series:11 *EventSeries; action:12 string; related:13 *ObjectReference; reportingComponent:14! string; reportingInstance:15! string
EventSource = component:1 string; host:2 string
EventSeries = count:1 int32; lastObservedTime:2! microtime
events.Event = metadata:1! meta.ObjectMeta; eventTime:2!+ microtime; series:3 *events.EventSeries; reportingController:4 string; reportingInstance:5 string; action:6 string; reason:7 string; regarding:8! ObjectReference; related:9 *ObjectReference; note:10 string; type:11 string; deprecatedSource:12! EventSource; deprecatedFirstTimestamp:13! time; deprecatedLastTimestamp:14! time; deprecatedCount:15 int32
events.EventSeries = count:1!+ int32; lastObservedTime:2!+ microtime
ObjectReference: Refers to another object.
ObjectReference.kind: Kind of the object.
ObjectReference.namespace: Its namespace.
ObjectReference.name: Its name.
ObjectReference.uid: Its uid.
ObjectReference.apiVersion: Group and version of its kind.
ObjectReference.resourceVersion: The specific version of the object, if any.
ObjectReference.fieldPath: The part of the object.
Event: A report of an event on an object.
events.Event: A report of an event on an object.
`;
