/** The types of Events of core/v1 and events.k8s.io/v1. Notation: `schema/notation.ts`. */

import type { Descriptions } from '../schema/notation.ts';

export const EVENT_TYPES = `
ObjectReference atomic = kind:1 string; namespace:2 string; name:3 string; uid:4 string:types.UID; apiVersion:5 string; resourceVersion:6 string; fieldPath:7 string
Event = metadata:1!+ meta.ObjectMeta; involvedObject:2!+ ObjectReference; reason:3 string; message:4 string; source:5! EventSource; firstTimestamp:6! time; lastTimestamp:7! time; count:8 int32; type:9 string; eventTime:10! microtime; series:11 *EventSeries; action:12 string; related:13 *ObjectReference; reportingComponent:14! string; reportingInstance:15! string
EventSource = component:1 string; host:2 string
EventSeries = count:1 int32; lastObservedTime:2! microtime
events.Event = metadata:1! meta.ObjectMeta; eventTime:2!+ microtime; series:3 *events.EventSeries; reportingController:4 string; reportingInstance:5 string; action:6 string; reason:7 string; regarding:8! ObjectReference; related:9 *ObjectReference; note:10 string; type:11 string; deprecatedSource:12! EventSource; deprecatedFirstTimestamp:13! time; deprecatedLastTimestamp:14! time; deprecatedCount:15 int32
events.EventSeries = count:1!+ int32; lastObservedTime:2!+ microtime
`;

export const EVENT_DESCRIPTIONS: Descriptions = {
  ObjectReference: 'Refers to another object.',
  'ObjectReference.kind': 'Kind of the object.',
  'ObjectReference.namespace': 'Its namespace.',
  'ObjectReference.name': 'Its name.',
  'ObjectReference.uid': 'Its uid.',
  'ObjectReference.apiVersion': 'Group and version of its kind.',
  'ObjectReference.resourceVersion': 'The specific version of the object, if any.',
  'ObjectReference.fieldPath': 'The part of the object.',
  Event: 'A report of an event on an object.',
  'events.Event': 'A report of an event on an object.',
};
