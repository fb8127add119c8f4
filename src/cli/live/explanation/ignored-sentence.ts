/** The sentence for each reason for which a sync ignores an object. */

import { keyOf } from '../../../kube/object.ts';
import {
  CONTROLLED_BY,
  isOptedOut,
  SKIP_BACKSYNC,
  type IgnoreReason,
} from '../../../syncer/reconcile/decide/decide.ts';
import type { ObjectPlan } from '../../../syncer/rehearsal.ts';

export function ignoredSentence({ seen, key, kind }: ObjectPlan, reason: IgnoreReason, what: string): string {
  const copy = seen.host === undefined ? '' : `; the host copy ${hostKey(seen.host.metadata)} stays as it is`;
  const service = `Service "${kind.serviceKey(key, seen.virtual) ?? key}"`;
  const copies = kind.resource.kind.replace(/s?$/u, 's');
  switch (reason) {
    case 'never synced':
      return `${what} is never synced: it describes the API server itself, and the host has its own`;
    case 'controlled by another': {
      const where = isOptedOut(seen.virtual) ? 'the virtual object' : 'the host copy';
      return `${what} is not synced: ${CONTROLLED_BY} on ${where} assigns it to another controller${copy}; remove it to resume syncing`;
    }
    case 'skip-backsync':
      return `${what} no longer exists, and ${SKIP_BACKSYNC} on the host copy keeps that copy`;
    case 'gone on both sides':
      return `${what} exists neither in the virtual cluster nor on the host`;
    case 'service has a selector':
      return `${what} is not copied: ${service} has a selector, so the host's own controllers create the host ${copies}`;
    case 'no service':
      return `${what} is not copied: there is no ${service}, and endpointSyncer.requireService is true`;
    case 'no service name':
      return `${what} is not copied: it has no label kubernetes.io/service-name, so it belongs to no Service`;
    case 'made by the EndpointSlice controller':
      return `${what} is not copied: the virtual cluster's EndpointSlice controller created it, and the host's own controller creates the host ${copies}`;
    case 'mirrored from Endpoints':
      return `${what} is not copied: it mirrors the Endpoints of ${service}, which are synced, and the host mirrors their copy`;
    case 'selects Pods':
      return `${what} is not copied: it has a selector, and no Pods are synced that it could select on the host`;
    case 'no synced endpoints':
      return `${what} is not copied: it has no Endpoints or EndpointSlices that are synced, and is no ExternalName Service`;
    default:
      return reason satisfies never;
  }
}

function hostKey({ namespace = '', name }: { namespace?: string; name: string }): string {
  return `"${keyOf({ namespace, name })}"`;
}
