/** The kinds that references lead to: what they are called in both clusters, and what may be done with their objects. */

import type { Discovery } from '../../kube/discovery.ts';
import { TerminalError } from '../../base/errors.ts';
import { apiVersionOf, keyOf, type NamespacedName, type Resource } from '../../kube/object.ts';
import type { KindPolicy } from './reference-kinds.ts';
import { kindIdOf, type KindId } from '../translate/merge/recorded-kinds.ts';

/** A referenced object, by its virtual name: `v1 Secret default/tls`. Key of the importer's work queue. */
export type ReferenceId = string;

export interface ReferencedKind {
  readonly id: KindId;
  readonly virtual: Resource;
  readonly host: Resource;
  /** A patch of the configuration names it: its objects are looked for on the host too. */
  readonly isNamed: boolean;
  /** Its syncing is configured: its virtual objects are imported into the host. */
  readonly isSynced: boolean;
  /** False: another syncer copies all of them, nothing is imported either way. */
  readonly isImportable: boolean;
}

export function referenceIdOf(kind: KindId, virtual: NamespacedName): ReferenceId {
  return `${kind} ${keyOf(virtual)}`;
}

export interface ReferenceParts {
  readonly kind: KindId;
  readonly namespace: string;
  readonly name: string;
}

export function parseReferenceId(id: ReferenceId): ReferenceParts {
  const space = id.lastIndexOf(' ');
  const slash = id.indexOf('/', space);
  return { kind: id.slice(0, space), namespace: id.slice(space + 1, slash), name: id.slice(slash + 1) };
}

/** `Secret "default/tls"`, for people. */
export function describeReference(kind: ReferencedKind, name: NamespacedName): string {
  return `${kind.virtual.kind} "${keyOf(name)}"`;
}

export interface Discoveries {
  readonly virtual: Discovery;
  readonly host: Discovery;
}

/** What both clusters call the kind. Rejects with `TerminalError` where one does not serve it, or not in namespaces. */
export async function resolveKind(
  { apiVersion, kind }: { apiVersion: string; kind: string },
  discoveries: Discoveries,
  policy: KindPolicy,
): Promise<ReferencedKind> {
  const [virtual, host] = await Promise.all([
    discoveries.virtual.resolveNamespaced(apiVersion, kind),
    discoveries.host.resolveNamespaced(apiVersion, kind),
  ]);
  return asReferencedKind(virtual, host, policy);
}

export function asReferencedKind(virtual: Resource, host: Resource, policy: KindPolicy): ReferencedKind {
  return {
    id: kindIdOf({ apiVersion: apiVersionOf(virtual), kind: virtual.kind }),
    virtual,
    host,
    isNamed: policy.isNamed(virtual),
    isSynced: policy.isSynced(virtual),
    isImportable: policy.isImportable(virtual),
  };
}

/** Every kind that a patch names. Rejects with a `TerminalError` that says which patch is wrong. */
export async function resolveNamedKinds(
  policy: KindPolicy,
  discoveries: Discoveries,
): Promise<readonly ReferencedKind[]> {
  const kinds: ReferencedKind[] = [];
  for (const named of policy.named) {
    try {
      kinds.push(await resolveKind(named, discoveries, policy));
    } catch (error) {
      if (!(error instanceof TerminalError)) throw error;
      throw new TerminalError(
        `sync.toHost.endpoints.patches[${named.patchIndex}].reference: ${error.message}. ` +
          'Correct apiVersion and kind, or install the CustomResourceDefinition in both clusters.',
        { cause: error },
      );
    }
  }
  return kinds;
}
