/** The configuration file changes while the daemon runs: what is reloaded, and what is not applied is visible. */

import { readFileSync } from 'node:fs';
import { describe, test } from 'vitest';
import { parse, stringify } from 'yaml';
import type { JsonObject } from '../../src/base/json.ts';
import { configurationTextHash } from '../../src/config-file/source-file.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { capturedRun } from '../cli/captured-run.ts';
import { eventually } from '../support/eventually.ts';
import { replaceFile } from '../support/replace-file.ts';
import { ipsOf, subset } from './objects.ts';
import { configMap, importedTo, named, referencePatches } from './reference-objects.ts';
import type { NewWorld, World } from './world.ts';

/** What one writes, the other changes. */
export const UPPER = { path: 'metadata.annotations.note', expression: 'value.toUpperCase()' };
export const LOWER = { path: 'metadata.annotations.note', expression: 'value.toLowerCase()' };

/** With these patches of Endpoints. */
export function patched(...patches: JsonObject[]): JsonObject {
  return { sync: { toHost: { endpoints: { patches } } } };
}

export function reloadScenarios(newWorld: NewWorld): void {
  describe('the configuration file', () => {
    test('is reloaded while the daemon runs; after an invalid change the old one remains active, other changes require a restart', async ({
      expect,
    }) => {
      await using world = await newWorld();
      world.expectErrors(/configuration file is invalid/u);
      const daemon = await world.startDaemon({ config: patched(UPPER) });
      await world.createVirtual('default/note', { annotations: { note: 'MiXed' } });
      await whenNote(world, 'MIXED');

      await rewrite(daemon, (config) => ({ ...config, ...patched(LOWER) }));
      await whenNote(world, 'mixed');
      expect((await world.getVirtual('default/note')).metadata.annotations).toEqual({ note: 'MiXed' });

      const valid = readFileSync(daemon.configPath, 'utf8');
      replaceFile(daemon.configPath, `${valid}\nsync: [broken\n`);
      await eventually(
        () => daemon.stderr,
        (text) => /invalid/i.test(text),
        { what: 'a complaint about the invalid file' },
      );
      await world.mergeVirtual('default/note', {
        metadata: { annotations: { note: 'STILL' } },
      });
      await whenNote(world, 'still');

      replaceFile(daemon.configPath, valid);
      await rewrite(daemon, (config) => withSyncer(config, { workers: 3 }));
      await eventually(
        () => daemon.stderr,
        (text) => /restart/i.test(text),
        { what: 'a line that asks for a restart' },
      );

      await rewrite(daemon, (config) => ({ ...config, ...patched() }));
      await whenNote(world, 'STILL');
      expect(await daemon.terminate()).toEqual({ code: 0, signal: null });
    });

    test('that is not applied is visible on the Lease, in metrics and in readiness, until it is', async ({
      expect,
    }) => {
      await using world = await newWorld();
      world.expectErrors(/configuration file is invalid/u);
      const daemon = await world.startSync({ config: patched(UPPER) });
      const isApplied = (value: number) =>
        eventually(
          () => daemon.metric('endpoint_syncer_config_last_reload_successful'),
          (seen) => seen === value,
        );
      const readiness = async (): Promise<string> =>
        /^.*\bconfiguration ok.*$/mu.exec((await daemon.get('/readyz?verbose')).text)?.[0] ?? '';
      await isApplied(1);
      const healthcheck = (file: string, timeout: string) =>
        capturedRun(['healthcheck', '--config', file, '--url', daemon.httpUrl, '--timeout', timeout]);
      expect(await healthcheck(daemon.configPath, '1m')).toMatchObject({ code: 0, err: '' });
      const other = world.writeConfig(world.configuration({ config: patched(LOWER) }, 0));
      expect((await healthcheck(other, '5s')).err).toMatch(/ runs configuration \S+, not \S+\n$/u);
      const hash = await publishedHash(world);
      const textHash = () => annotationOf(world, 'endpoint-syncer/configuration-text');
      await expect.poll(textHash).toBe(configurationTextHash(readFileSync(daemon.configPath, 'utf8')));
      const textInUse = await textHash();
      await expect.poll(readiness).toMatch(new RegExp(`ok: ${hash}, since 20\\S+Z$`, 'u'));

      await rewrite(daemon, (config) => ({ ...config, ...patched({ ...UPPER, expression: 'value +' }) }));
      await isApplied(0);
      expect(await whenLeaseEvent(world, 'patches[0].expression')).toMatchObject({ type: 'Warning' });
      await expect.poll(readiness).toMatch(/; that of the files is not applied, the log says why$/u);

      // What changed while the daemon runs is applied, and what needs a restart is not.
      await rewrite(daemon, (config) => withSyncer({ ...config, ...patched(LOWER) }, { workers: 3 }));
      await whenLeaseEvent(world, 'endpointSyncer.workers: needs a restart');
      await isApplied(0);
      // Long enough for a response of a busy machine.
      expect(await healthcheck(daemon.configPath, '5s')).toMatchObject({
        code: 1,
        err: expect.stringContaining('has not applied its configuration') as string,
      });
      const applied = await eventually(
        () => publishedHash(world),
        (now) => now !== hash,
      );
      const inUse = 'endpoint_syncer_config_last_reload_success_timestamp_seconds';
      await daemon.whenMetric(inUse, (seconds) => seconds > 1.7e9, { hash: applied });
      await daemon.whenMetric(inUse, (seconds) => seconds === 0, { hash });
      // Not all that this file says is in use.
      expect(await textHash()).toBe(textInUse);

      await rewrite(daemon, (config) => withSyncer(config, { workers: 10 }));
      await isApplied(1);
      await expect.poll(textHash).toBe(configurationTextHash(readFileSync(daemon.configPath, 'utf8')));
    });

    test("overlays vCluster's own values file, and both are reloaded", async ({ expect }) => {
      await using world = await newWorld();
      /** vCluster's values: our section in them, or endpoints.enabled: true, would stop vCluster. */
      const writeValues = (...patches: JsonObject[]): void => {
        const endpointSlices = { enabled: false };
        const toHost = { endpoints: { enabled: false, patches }, endpointSlices };
        world.file(
          'values.yaml',
          stringify({ controlPlane: { coredns: { enabled: true } }, sync: { toHost } }),
        );
      };
      writeValues(UPPER);
      // Relative to the configuration file, which is in the same folder.
      const daemon = await world.startSync({
        config: { endpointSyncer: { vclusterConfig: 'values.yaml' } },
      });
      await world.createVirtual('default/note', { annotations: { note: 'MiXed' } });
      await whenNote(world, 'MIXED');

      writeValues(LOWER);
      await whenNote(world, 'mixed');

      await rewrite(daemon, (config) => ({ ...config, ...patched() }));
      expect((await whenNote(world, 'MiXed')).metadata.annotations).toMatchObject({ note: 'MiXed' });
    });

    test('another file that vclusterConfig names is read and watched, also while it is invalid', async ({
      expect,
    }) => {
      await using world = await newWorld();
      world.expectErrors(/configuration file is invalid/u);
      const writeValues = (name: string, patch: JsonObject): string =>
        world.file(
          name,
          stringify({
            sync: {
              toHost: {
                endpoints: { enabled: false, patches: [patch] },
                endpointSlices: { enabled: false },
              },
            },
          }),
        );
      writeValues('first.yaml', UPPER);
      writeValues('second.yaml', { ...LOWER, expression: 'value.toLowerCase(' });
      const daemon = await world.startSync({ config: { endpointSyncer: { vclusterConfig: 'first.yaml' } } });
      await world.createVirtual('default/note', { annotations: { note: 'MiXed' } });
      await whenNote(world, 'MIXED');

      await rewrite(daemon, (config) => withSyncer(config, { vclusterConfig: 'second.yaml' }));
      await eventually(
        () => daemon.log,
        (log) => log.some(({ msg }) => String(msg).startsWith('configuration file is invalid')),
      );
      writeValues('second.yaml', LOWER);
      expect((await whenNote(world, 'mixed')).metadata.annotations).toMatchObject({ note: 'mixed' });
    });

    test('a reload reports nothing about unchanged imports', async ({ expect }) => {
      await using world = await newWorld();
      const daemon = await world.startSync({ config: referencePatches() });
      await world.virtual.create('ConfigMap', configMap('default/settings', { k: '1' }));
      await world.virtual.create('Endpoints', named('default/web', { config: 'settings' }));
      await importedTo(world, 'ConfigMap', 'default/settings');
      await world.settle(daemon);
      const copy = await importedTo(world, 'ConfigMap', 'default/settings');
      const earlier = daemon.log.length;
      const off = { secrets: { enabled: false } };
      await rewrite(daemon, (config) => ({ ...config, ...referencePatches(off) }));
      await eventually(
        () => daemon.stderr,
        (text) => text.includes('configuration reloaded'),
      );
      await world.settle(daemon);
      expect(daemon.log.slice(earlier).filter(({ level }) => level !== 'info')).toEqual([]);
      expect(await importedTo(world, 'ConfigMap', 'default/settings')).toEqual(copy);
    });

    test('can disable and enable the sync, and move the copies to other namespaces', async ({ expect }) => {
      await using world = await newWorld();
      const daemon = await world.startSync();
      const key = 'team-a/moves';
      const target = `${world.hostNamespace}-a`;
      await world.virtualNamespace('team-a');
      await world.hostNamespaceNamed(target);
      await world.createVirtual(key);
      await world.whenCopied(key);

      await rewrite(daemon, (config) => ({ ...config, sync: { toHost: { endpoints: { enabled: false } } } }));
      await eventually(
        () => daemon.stderr,
        (text) => /reloaded/i.test(text),
      );
      await eventually(
        () => daemon.log.find(({ copies }) => copies !== undefined),
        (line) =>
          line?.['copies'] === 1 && line['command'] === 'endpoint-syncer cleanup --unused --config FILE',
        { what: 'a line that counts the copies that are left' },
      );
      await world.mergeVirtual(key, { subsets: [subset('10.1.0.12')] });
      await rewrite(daemon, (config) => ({ ...config, sync: {} }));
      await world.whenCopy(key, (copy) => ipsOf(copy)[0] === '10.1.0.12');

      const byName = { 'team-a': target };
      const namespaces = { enabled: true, mappings: { byName } };
      await rewrite(daemon, (config) => ({ ...config, sync: { toHost: { namespaces } } }));
      const moved = await world.host.when('Endpoints', [target, 'moves']);
      expect(ipsOf(moved)).toEqual(['10.1.0.12']);
      await world.whenNoCopy(key);
    });
  });
}

/** Waits until the copy of `default/note` has this note. */
function whenNote(world: World, text: string): Promise<KubeObject> {
  return world.whenCopy('default/note', ({ metadata }) => metadata.annotations?.['note'] === text);
}

/** The hash on the Lease of the daemon, which gets it when the sync runs already. */
export async function publishedHash(world: World): Promise<string> {
  return annotationOf(world, 'endpoint-syncer/configuration');
}

async function annotationOf(world: World, key: string): Promise<string> {
  const valueOf = (lease: KubeObject): string => lease.metadata.annotations?.[key] ?? '';
  return valueOf(await world.host.when('Lease', leaseOf(world), (lease) => valueOf(lease) !== ''));
}

/** An Event on the Lease about a configuration that is not applied, with this text. */
function whenLeaseEvent(world: World, text: string): Promise<KubeObject | undefined> {
  const [namespace, name] = leaseOf(world);
  return eventually(
    async () => (await world.host.list('Event', namespace)).find(isAbout(name, text)),
    (event) => event !== undefined,
    { what: `an Event on the Lease with "${text}"` },
  );
}

function isAbout(lease: string, text: string): (event: KubeObject) => boolean {
  return ({ reason, regarding, note }) =>
    reason === 'ConfigurationNotApplied' &&
    (regarding as JsonObject)['name'] === lease &&
    typeof note === 'string' &&
    note.includes(text);
}

function leaseOf(world: World): [string, string] {
  return [world.hostNamespace, `endpoint-syncer-${world.vcluster}`];
}

export async function rewrite(
  daemon: { readonly configPath: string },
  change: (config: JsonObject) => JsonObject,
): Promise<void> {
  const config = parse(readFileSync(daemon.configPath, 'utf8')) as JsonObject; // we wrote it
  replaceFile(daemon.configPath, stringify(change(config)));
}

/** `config`, with these settings of the section `endpointSyncer`. */
export function withSyncer(config: JsonObject, settings: JsonObject): JsonObject {
  return { ...config, endpointSyncer: { ...(config['endpointSyncer'] as JsonObject), ...settings } }; // as it was written
}
