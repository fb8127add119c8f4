/** What an object waits for that is being deleted, in words. */

import { valueAt } from '../base/json.ts';
import { asJson, finalizersOf, type KubeObject } from './object.ts';

/** What an object waits for that is being deleted: follows its name. */
export function describeTermination(object: KubeObject): string {
  const finalizers = finalizersOf(object);
  const what =
    finalizers.length === 0
      ? ''
      : `, and waits for ${finalizers.length === 1 ? 'the finalizer' : 'the finalizers'} ${finalizers.join(', ')}`;
  return `is being deleted since ${object.metadata.deletionTimestamp ?? 'now'}${what}`;
}

/** What a namespace waits for that is being deleted, by the messages of its conditions: follows its name. */
export function describeNamespaceEnd(namespace: KubeObject): string {
  const conditions = valueAt(asJson(namespace), ['status', 'conditions']);
  const waits = (Array.isArray(conditions) ? conditions : []).flatMap((condition) => {
    const [type, status, message] = ['type', 'status', 'message'].map((member) =>
      valueAt(condition, [member]),
    );
    const isWait = status === 'True' && typeof type === 'string' && type.startsWith('Namespace');
    return isWait && typeof message === 'string' ? [message] : [];
  });
  const since = namespace.metadata.deletionTimestamp ?? 'now';
  return `is being deleted since ${since}${waits.length === 0 ? '' : `: ${waits.join('; ')}`}`;
}
