/** Pairs of real clusters for the whole suite, and for each a small control server through which tests stop and start parts of it. */

import { createServer, type Server } from 'node:http';
import type { TestProject } from 'vitest/node';
import { startRealClusters, type Component, type RealCluster, type RealClusters } from './clusters.ts';

export interface ProvidedClusters {
  readonly virtual: RealCluster;
  readonly host: RealCluster;
  readonly kubectl: string;
  /** `POST <controlUrl>/stop/<component>` and `/start/<component>`. */
  readonly controlUrl: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    /** One for each worker, see `suiteClusters`. */
    clusters: readonly ProvidedClusters[];
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await using resources = new AsyncDisposableStack();
  const provided: ProvidedClusters[] = [];
  for (let worker = 0; worker < project.vitest.config.maxWorkers; worker++) {
    const clusters = resources.use(await startRealClusters());
    const { server, url } = await startControl(clusters);
    resources.defer(() => void server.close());
    const { virtual, host, kubectl } = clusters;
    provided.push({ virtual, host, kubectl, controlUrl: url });
  }
  project.provide('clusters', provided);
  const started = resources.move();
  return () => started.disposeAsync();
}

async function startControl(clusters: RealClusters): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    control(clusters, request.url ?? '').then(
      () => response.writeHead(200).end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { server, url: `http://127.0.0.1:${port}` };
}

async function control(clusters: RealClusters, path: string): Promise<void> {
  const [, verb, component] = path.split('/');
  if (!isComponent(component)) throw new Error(`unknown component in ${path}`);
  if (verb === 'stop') await clusters.stop(component);
  else if (verb === 'start') await clusters.start(component);
  else throw new Error(`unknown verb in ${path}`);
}

function isComponent(word: string | undefined): word is Component {
  return word === 'virtual' || word === 'host' || word === 'controllers';
}
