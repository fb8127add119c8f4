/**
 * Parts of packages that are imported past their entry points, for memory: each behind one file, and still the same as what the package
 * exports, where it exports them.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import * as promClient from 'prom-client';
import * as undici from 'undici';
import { expect, test } from 'vitest';
import * as promClientParts from '../src/base/metrics/prom-client-parts.ts';
import * as undiciParts from '../src/kube/client/undici-parts.ts';

const ROOT = join(import.meta.dirname, '..');

function filesWithPrivateImports(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))
    .filter((name) =>
      /'(undici|prom-client)\/(lib|dist)\//u.test(readFileSync(join(ROOT, folder, name), 'utf8')),
    )
    .map((name) => relative(ROOT, join(ROOT, folder, name)));
}

test('each package has one file that imports its parts', () => {
  expect(['src', 'bench', 'test'].flatMap(filesWithPrivateImports).toSorted()).toEqual([
    'src/base/metrics/prom-client-parts.ts',
    'src/kube/client/undici-parts.ts',
  ]);
});

test('undici: the parts are what the package exports', () => {
  const { Client, Pool, buildConnector } = undici;
  expect({ ...undiciParts }).toEqual({ Client, Pool, buildConnector });
});

test('prom-client: the parts are what the package exports', () => {
  const { Counter, Gauge, Histogram, Registry } = promClient;
  expect({ ...promClientParts }).toEqual({ Counter, Gauge, Histogram, Registry });
});
