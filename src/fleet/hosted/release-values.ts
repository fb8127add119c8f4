/** The values of a vCluster's release of Helm. */

import { gunzipSync } from 'node:zlib';
import { messageOf, TerminalError } from '../../base/errors.ts';
import { isJsonObject, parseJson, valueAt, type JsonObject } from '../../base/json.ts';
import { writeYaml } from '../../base/yaml/write.ts';
import { readDocument } from '../../config-file/document.ts';
import { objectKey, type KubeObject } from '../../kube/object.ts';
import type { ConfigText } from '../../shared-config/layers.ts';
import { valuesInForce } from '../../syncer/config/values-in-force.ts';
import { hasBookkeeping } from '../../syncer/translate/bookkeeping.ts';
import { secretText } from '../vcluster.ts';

export interface VclusterValues {
  /** What the user gave to Helm, as `helm get values` prints it. */
  readonly text: string;
  /** What vCluster runs with; undefined: it is `text`, or not known. */
  readonly inForce: ConfigText | undefined;
  /** Which revision of the release this is, if it is not the one that a reader expects. */
  readonly notes: readonly string[];
}

const UNFINISHED = ['failed', 'pending-install', 'pending-upgrade', 'pending-rollback'];

/** Selects the Secrets with the revisions that may be in force. */
export function releaseSelector(name: string): string {
  return `owner=helm,name=${name},status in (${UNFINISHED.join()},deployed)`;
}

/** From the newest revision to the one that is deployed. Those that failed may be in force, in part or as a whole. */
export function newestReleases(secrets: readonly KubeObject[]): readonly KubeObject[] {
  // A tenant chooses the labels of its Secrets, but not that a syncer has copied them here.
  const releases = secrets
    .filter((secret) => !hasBookkeeping(secret))
    .toSorted((a, b) => revisionOf(b) - revisionOf(a));
  const deployed = releases.findIndex((secret) => statusOf(secret) === 'deployed');
  return deployed < 0 ? releases : releases.slice(0, deployed + 1);
}

/** The first of the releases whose values are in force, else the first. */
export function releaseInForce(
  releases: readonly KubeObject[],
  inForce: ConfigText | undefined,
): Pick<VclusterValues, 'text' | 'notes'> | undefined {
  const [newest] = releases;
  if (newest === undefined) return undefined;
  const running = inForce === undefined ? undefined : readDocument(inForce.file, inForce.text).value;
  const isInForce = (release: KubeObject): boolean =>
    running !== undefined && valuesInForce(releasedValues(release), running).differences.length === 0;
  const chosen = releases.find(isInForce) ?? newest;
  const named = `revision ${revisionOf(chosen)} of the release`;
  const last = `revision ${revisionOf(newest)}, which is ${statusOf(newest)}`;
  const note =
    chosen !== newest
      ? `these are the values of ${named}, with which vCluster runs; "helm get values" prints those of ${last}`
      : `these are the values of ${named}, which is ${statusOf(newest)}`;
  const isExpected = chosen === newest && statusOf(newest) === 'deployed';
  return { text: writeYaml(releasedValues(chosen)), notes: isExpected ? [] : [note] };
}

function revisionOf({ metadata: { labels } }: KubeObject): number {
  return Number(labels?.['version'] ?? 0);
}

function statusOf({ metadata: { labels } }: KubeObject): string {
  return labels?.['status'] ?? '';
}

/** A Secret of 1 MiB may be as much as 1 GiB without its compression. */
const RELEASE_BYTES_MAX = 32 * 1024 * 1024;

function releasedValues(release: KubeObject): JsonObject {
  try {
    const packed = Buffer.from(secretText(release, 'release'), 'base64');
    const record = parseJson(gunzipSync(packed, { maxOutputLength: RELEASE_BYTES_MAX }).toString());
    const values = valueAt(record, ['config']);
    return isJsonObject(values) ? values : {};
  } catch (error) {
    const message = `Secret "${objectKey(release)}" has no release of Helm: ${messageOf(error)}`;
    throw new TerminalError(message, { cause: error });
  }
}
