/** Series between scrapes, and the text of several registries. */

import { expect, test } from 'vitest';
import { mergedText, SeriesRegistry } from '../../../src/base/metrics/series.ts';

/** Without help and type. */
async function seriesOf(registry: SeriesRegistry): Promise<string[]> {
  return (await registry.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

test('a counter keeps its sum over scrapes, and its series when they are requested again', async () => {
  const registry = new SeriesRegistry();
  const family = registry.counter({ name: 'writes_total', help: 'h', labels: ['verb'] });
  const count = family.of({ verb: 'create' });
  expect(await seriesOf(registry)).toEqual(['writes_total{verb="create"} 0']);
  count();
  count(2);
  await registry.text();
  family.of({ verb: 'create' })(4);
  count();
  expect(await seriesOf(registry)).toEqual(['writes_total{verb="create"} 8']);
});

test('a gauge keeps its value over scrapes, is refreshed by each, and has no series that was removed', async () => {
  const registry = new SeriesRegistry();
  let scrapes = 0;
  const family = registry.gauge({ name: 'size', help: 'h', labels: ['of'] }, () => counted(++scrapes));
  const counted = family.of({ of: 'scrapes' });
  family.of({ of: 'kept' })(7);
  family.of({ of: 'removed' })(9);
  await registry.text();
  family.remove({ of: 'removed' });
  expect((await seriesOf(registry)).toSorted()).toEqual(['size{of="kept"} 7', 'size{of="scrapes"} 2']);
});

test('a counter that is read at each scrape never falls, whatever is read', async () => {
  const registry = new SeriesRegistry();
  const values = [5, 8, 3, 4];
  registry.readCounter({ name: 'seconds_total', help: 'h' }, () => values.shift() ?? Number.NaN);
  const shown: string[] = [];
  while (values.length > 0) shown.push(...(await seriesOf(registry)));
  // As Prometheus does after a restart: what comes after a lower value is counted from there.
  expect(shown).toEqual([5, 8, 8, 9].map((value) => `seconds_total ${value}`));
});

test('several registries are one text, each family once, and each series with the label of its registry', async () => {
  const registries = [{}, { vcluster: 'team-a/one' }, { vcluster: 'team-b/two' }].map(
    (labels) => new SeriesRegistry(labels),
  );
  for (const [at, registry] of registries.entries()) {
    registry.gauge({ name: 'held', help: 'Held.' }).of({})(at);
    if (at === 0) registry.counter({ name: 'starts_total', help: 'Starts.' }).of({})();
  }
  expect(await mergedText(registries)).toBe(
    [
      '# HELP held Held.',
      '# TYPE held gauge',
      'held 0',
      'held{vcluster="team-a/one"} 1',
      'held{vcluster="team-b/two"} 2',
      '',
      '# HELP starts_total Starts.',
      '# TYPE starts_total counter',
      'starts_total 1',
      '',
    ].join('\n'),
  );
});
