/** What another syncer of the same objects has copied from the host copy back to the virtual object, and what proves it. */

import type { KubeObject, StringMap } from '../../kube/object.ts';
import { ownValue } from '../../base/json.ts';
import { isBookkeepingAnnotation, LAST_SYNCED, OBJECT_HOST_NAME } from './bookkeeping.ts';
import { stringMapOf } from './labels.ts';
import { decodeLastSynced, recordOf, shortHash, type LastSynced } from './last-synced.ts';
import type { MapMerge, MapMergeInput } from './merge-map.ts';

/** What this process remembers of a pair; without it, the record alone decides. */
export interface MergeMemory {
  /** Both objects when they were in step last. */
  readonly agreed: { readonly virtual: KubeObject; readonly host: KubeObject } | undefined;
  /** The last record of the copy that this process saw or wrote. */
  readonly record?: string | undefined;
  /** Hashes of the records before it, which this process has replaced on the copy. */
  readonly formerRecords?: readonly string[];
  /** Values that another syncer has copied back are replaced now; otherwise, they stay. */
  readonly restoresEchoes: boolean;
  /** Annotations and labels that both sides keep rewriting, as {@link idOfKey}: they are left alone for now. */
  readonly held?: ReadonlySet<string>;
}

interface EchoInput {
  readonly virtual: KubeObject;
  readonly desired: KubeObject;
  readonly memory?: MergeMemory | undefined;
}

/** Another syncer has copied the host copy's metadata back to the virtual object. */
export interface Echo {
  /** Keys of annotations and labels, bookkeeping included. */
  readonly keys: readonly string[];
  /** Those of them that the virtual object keeps for now. */
  readonly left: readonly string[];
}

export function echoInput(
  input: EchoInput,
  member: 'annotations' | 'labels',
  mapOf: (object: KubeObject, side: 'virtual' | 'host') => StringMap,
): Pick<MapMergeInput, 'agreed' | 'echoes' | 'remembered' | 'former'> {
  const { memory } = input;
  const agreed = memory?.agreed;
  const isRecordEchoed = echoedBookkeeping(input).length > 0;
  return {
    agreed: agreed && { virtual: mapOf(agreed.virtual, 'virtual'), host: mapOf(agreed.host, 'host') },
    echoes: { isRecordEchoed, restoresEcho: memory?.restoresEchoes === true },
    // Without anything that came back, the record of the copy is the last one.
    remembered: isRecordEchoed ? decodeLastSynced(memory?.record)?.[member] : undefined,
    former: formerRecord(input)?.[member],
  };
}

/** The record that the virtual object has, if this process wrote exactly that on the copy before the present one. */
function formerRecord({ virtual, memory }: EchoInput): LastSynced | undefined {
  const record = recordOf(virtual);
  if (record === undefined || memory?.formerRecords?.includes(shortHash(record)) !== true) return undefined;
  return decodeLastSynced(record);
}

/** Annotations of the virtual object that are the bookkeeping of its own copy. Those of a virtual cluster inside this one name other objects. */
function echoedBookkeeping({ virtual, desired }: EchoInput): readonly string[] {
  const annotations = stringMapOf(virtual.metadata.annotations);
  const found = Object.keys(annotations).filter(isBookkeepingAnnotation);
  if (found.length === 0) return [];
  const hostName = ownValue(annotations, OBJECT_HOST_NAME);
  const isOfCopy = hostName === undefined ? found.includes(LAST_SYNCED) : hostName === desired.metadata.name;
  return isOfCopy ? found : [];
}

/** The bookkeeping is removed last: another syncer carries its removal to the host, where it proves the other keys. */
export function echoOf(input: EchoInput, echoes: MapMerge['echoes']): Echo | undefined {
  const bookkeeping = echoedBookkeeping(input);
  if (bookkeeping.length === 0 && echoes.length === 0) return undefined;
  const left = echoes.filter(({ isLeft }) => isLeft).map(({ key }) => key);
  const isKept = left.length > 0 || input.memory?.restoresEchoes !== true;
  return {
    keys: [...echoes.map(({ key }) => key), ...bookkeeping],
    left: isKept ? [...left, ...bookkeeping] : [],
  };
}
