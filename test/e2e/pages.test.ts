/** Every command of the pages that need kubectl or real clusters is run from the packed install, and prints what the page shows. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, test } from 'vitest';
import { differences } from '../docs/differences.ts';
import { packedEnvironment } from '../docs/packed-install.ts';
import { pagesThatNeed } from '../docs/pages.ts';
import { playPage, type PlayedCommand } from '../docs/session.ts';
import { freePorts } from '../scenarios/free-ports.ts';
import { startRealClusters } from './clusters.ts';

test.each(pagesThatNeed('kubectl'))('%s', { timeout: 300_000 }, async (page) => {
  expect(differences(await play(page, {}))).toEqual([]);
});

test.each(pagesThatNeed('clusters'))('%s', { timeout: 300_000 }, async (page) => {
  await using clusters = await startRealClusters();
  await promisify(execFile)(clusters.kubectl, [
    `--kubeconfig=${clusters.host.kubeconfigPath}`,
    'create',
    'namespace',
    'team-a',
  ]);
  const files = {
    'virtual.kubeconfig': readFileSync(clusters.virtual.kubeconfigPath, 'utf8'),
    'host.kubeconfig': readFileSync(clusters.host.kubeconfigPath, 'utf8'),
  };
  expect(differences(await play(page, files))).toEqual([]);
});

/** In an empty folder with these files; the ports that pages name may be taken here. */
async function play(page: string, files: Readonly<Record<string, string>>): Promise<PlayedCommand[]> {
  const [api, metrics] = await freePorts(2);
  const env = await packedEnvironment([dirname(inject('clusters').kubectl)]);
  const replace = { '127.0.0.1:8443': `127.0.0.1:${api}`, '127.0.0.1:8080': `127.0.0.1:${metrics}` };
  return playPage({ page, env, replace, files });
}
