/** A kubeconfig of the API with two contexts. */

import type { Composed } from '../../access-keys/composed-api.ts';

/** Keys of the contexts; `current` is the current context. */
export interface ContextKeys {
  readonly current: string;
  readonly named?: string;
}

export function kubeconfigText(api: Composed, { current, named = current }: ContextKeys): string {
  const authority = Buffer.from(api.ca).toString('base64');
  const keys = Object.entries({ current, named });
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'platform', cluster: { server: api.api.url, 'certificate-authority-data': authority } },
    ],
    users: keys.map(([name, token]) => ({ name, user: { token } })),
    contexts: keys.map(([name]) => ({ name, context: { cluster: 'platform', user: name } })),
    'current-context': 'current',
  });
}
