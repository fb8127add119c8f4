/** Warns of what only the newest version of Kubernetes takes, by whose rules the offline commands judge. */

import { objectKey, type KubeObject } from '../../kube/object.ts';
import { differencesOfOlder } from '../../kube/older-versions.ts';
import { plainText } from '../../base/excerpt.ts';
import { tell } from './terminal.ts';

/** `object`: as it would be written to the host. */
export function warnOfOlder(object: KubeObject): void {
  for (const { path, message } of differencesOfOlder(object))
    tell(`warning: ${plainText(`${object.kind ?? ''} ${objectKey(object)}: ${path}: ${message}`)}`);
}
