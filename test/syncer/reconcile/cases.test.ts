/** The cases of `test/cases` that involve decisions of the engine; those of translation have a separate test. */

import { describe, expect, test } from 'vitest';
import { ENDPOINTS, type KubeObject, type ObjectMeta } from '../../../src/kube/object.ts';
import type { JsonObject, JsonValue } from '../../../src/base/json.ts';
import { endpointsKind } from '../../../src/syncer/kinds/endpoints.ts';
import { decide, isOptedOut, type Observation } from '../../../src/syncer/reconcile/decide.ts';
import { apiDefaults } from '../../../src/cli/offline/api-defaults.ts';
import type { FileWorld } from '../../../src/syncer/rehearsal/file-world.ts';
import { FileSync, type Rendered } from '../../../src/syncer/rehearsal/files.ts';
import { translators } from '../translate/setup.ts';
import { ownershipOf } from '../../../src/syncer/translate/bookkeeping.ts';
import { validConfig } from '../../cli/config/setup.ts';
import { isOverruled, loadCases, type WorkedCase } from '../../support/cases.ts';

const ENGINE = /^(ep-(04|05|06|12|13|14|16|17)|eps-|event-|store-)/;
const cases = loadCases('sync').filter(({ id }) => ENGINE.test(id));

function caseOf(id: string): WorkedCase {
  const found = cases.find((one) => one.id === id);
  if (found === undefined) throw new Error(`no case ${id}`);
  return found;
}

const { names } = translators();
const config = validConfig(`
sync: {toHost: {endpoints: {enabled: true}, endpointSlices: {enabled: true}}}
endpointSyncer: {name: suffix, host: {namespace: test}}
`);

async function render(world: FileWorld): Promise<Rendered | undefined> {
  await using sync = new FileSync({ admit: apiDefaults() });
  const { rendered } = await sync.run(world, config, { direction: 'toHost' });
  return rendered[0];
}

function object(kind: string, metadata: Partial<ObjectMeta>, rest: JsonObject = {}): KubeObject {
  return { apiVersion: 'v1', kind, metadata: { name: 'web', namespace: 'test', ...metadata }, ...rest };
}

/** The copy of test/web as this program creates it. */
async function managedCopy(uid = 'u1'): Promise<KubeObject> {
  const virtual = [object('Endpoints', { uid })];
  const rendered = await render({ virtual, host: [] });
  if (rendered?.kind !== 'object') throw new Error('not rendered');
  return { ...rendered.object, metadata: { ...rendered.object.metadata, uid: 'h1', resourceVersion: '5' } };
}

async function seen(parts: Partial<Observation>): Promise<Observation> {
  const host = 'host' in parts ? parts.host : await managedCopy();
  return {
    key: 'test/web',
    virtual: object('Endpoints', { uid: 'u1' }),
    service: undefined,
    target: names.toHost({ namespace: 'test', name: 'web' }),
    unmapped: undefined,
    host,
    ownership: host && ownershipOf(host, ENDPOINTS, names),
    strays: [],
    claims: [],
    hasForeignService: false,
    isMoved: false,
    isUnserved: false,
    wasCopied: false,
    isKnownCopy: false,
    ...parts,
  };
}

const rules = { requireService: false, kind: endpointsKind, isSyncedByVcluster: false };

describe('cases of test/cases about the engine', () => {
  test('every case is run here, or excluded with a reason', () => {
    const run = ['ep-04', 'ep-06', 'ep-13', 'ep-16', 'ep-17', 'eps-01'];
    expect(cases.map(({ id }) => id).filter((id) => !run.includes(id))).toEqual(
      cases.filter(isOverruled).map(({ id }) => id),
    );
  });

  test('ep-04: taken over in place with the same result, and only if the host controller created it', async () => {
    const { input, expected } = caseOf('ep-04');
    const state = (side: string): KubeObject[] =>
      (input[side] as unknown as StatedObject[]).map(({ kind, name, namespace, annotations, ...rest }) =>
        object(kind, { name, namespace, ...(annotations ? { annotations } : {}) }, rest as JsonObject),
      );
    const renderOver = async (labels: Record<string, string>) => {
      const host = state('hostState').map((one) => withMetadata(one, { annotations: {}, labels }));
      return render({ virtual: state('virtualState'), host });
    };
    const foreign = await renderOver({});
    expect(foreign?.kind === 'skipped' && foreign.reason).toContain('NotManaged');
    const rendered = await renderOver({ 'endpoints.kubernetes.io/managed-by': 'endpoint-controller' });
    const [wanted] = (expected as { hostEndpoints: KubeObject[] }).hostEndpoints;
    expect(rendered).toMatchObject({ kind: 'object', object: wanted });
  });

  test('ep-05, overruled: synced without a Service; with requireService the copy is deleted', async () => {
    expect(decide(await seen({}), rules).kind).toBe('update');
    expect(decide(await seen({}), { ...rules, requireService: true })).toEqual({
      kind: 'delete',
      reason: 'no service',
    });
  });

  test('ep-06: a Service with a selector: the copy is deleted', async () => {
    const service = object('Service', {}, { spec: caseOf('ep-06').input['virtualService'] as JsonObject });
    expect(decide(await seen({ service }), rules).kind).toBe('delete');
  });

  test('ep-12, overruled: a copy with another uid is updated in place', async () => {
    const virtual = object('Endpoints', { uid: 'new' });
    expect(decide(await seen({ virtual, host: await managedCopy('old') }), rules).kind).toBe('rewrite');
  });

  test('ep-13: the virtual object was deleted: the copy is deleted', async () => {
    const service = object('Service', {}, { spec: { selector: null } });
    expect(decide(await seen({ virtual: undefined, service }), rules)).toEqual({
      kind: 'delete',
      reason: 'virtual object is gone',
    });
  });

  test('ep-14, overruled: a deleted host copy is recreated', async () => {
    expect(decide(await seen({ host: undefined }), rules).kind).toBe('create');
  });

  test('ep-16: synced before its Service exists, and with a headless Service without a selector', async () => {
    const headless = object(
      'Service',
      {},
      { spec: { clusterIP: 'None', ports: [{ port: 8080, targetPort: 5000 }] } },
    );
    expect(decide(await seen({ host: undefined }), rules).kind).toBe('create');
    expect(decide(await seen({ service: headless }), rules).kind).toBe('update');
  });

  test('ep-17: a controlled-by label opts out', () => {
    const { labels: controlled } = caseOf('ep-17').input['virtual'] as { labels: Record<string, string> };
    expect(isOptedOut(object('Endpoints', { labels: controlled }))).toBe(true);
  });
});

describe('cases of test/cases about EndpointSlices', () => {
  const renderSlice = (one: JsonValue | undefined) => {
    const slice = {
      ...(one as unknown as KubeObject),
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
    };
    return render({ virtual: [slice], host: [] });
  };

  test('eps-01: the label of the Service names the host Service', async () => {
    const { input, expected } = caseOf('eps-01');
    const { host } = expected as { host: JsonObject };
    expect(await renderSlice(input['virtual'])).toMatchObject({ kind: 'object', object: host });
  });

  test('eps-02, overruled: without a Service it is skipped', async () => {
    const slice = object('EndpointSlice', {}) as unknown as JsonObject;
    expect(await renderSlice(slice)).toMatchObject({ kind: 'skipped', reason: 'no service name' });
  });
});

/** How the cases write an object down. */
interface StatedObject {
  kind: string;
  name: string;
  namespace: string;
  annotations?: Record<string, string>;
}

/** An object of which more than the name is known. */
function withMetadata(one: KubeObject, metadata: Partial<ObjectMeta>): KubeObject {
  return { ...one, metadata: { ...metadata, ...one.metadata } };
}
