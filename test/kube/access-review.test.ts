/** Our own rights: what rules prove, and what is reviewed one by one. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isGranted,
  missingRights,
  type ResourceRule,
  type WantedRight,
} from '../../src/kube/access-review.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/base/json.ts';
import { failure } from '../../src/kube/status-error.ts';
import { TransportError } from '../../src/kube/types.ts';

const ACCESS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const RULES = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews';

type Respond = (spec: JsonObject) => JsonValue;

/** An API server that answers both reviews, with the specs of those that it was sent, and the most that it had at a time. */
class Reviews {
  readonly access: JsonObject[] = [];
  readonly rules: JsonObject[] = [];
  mostInFlight = 0;
  readonly #isAllowed: (attributes: JsonObject) => boolean;
  readonly #rulesFor: Respond;
  #inFlight = 0;

  constructor(isAllowed: (attributes: JsonObject) => boolean, rulesFor: Respond) {
    this.#isAllowed = isAllowed;
    this.#rulesFor = rulesFor;
  }

  async request(_method: string, path: string, body?: JsonValue): Promise<JsonValue> {
    this.mostInFlight = Math.max(this.mostInFlight, ++this.#inFlight);
    await new Promise((resolve) => setImmediate(resolve));
    this.#inFlight -= 1;
    const spec = isJsonObject(body) && isJsonObject(body['spec']) ? body['spec'] : {};
    if (path === RULES) {
      this.rules.push(spec);
      return this.#rulesFor(spec);
    }
    if (path !== ACCESS) return notServed();
    this.access.push(spec);
    const attributes = spec['resourceAttributes'];
    return { status: { allowed: isJsonObject(attributes) && this.#isAllowed(attributes) } };
  }
}

function failing(code: number, reason: string): () => never {
  return () => {
    throw failure(code, reason, 'no');
  };
}

const notServed = failing(404, 'NotFound');

function listed(resourceRules: JsonValue, isIncomplete = false): JsonValue {
  return { status: { resourceRules, nonResourceRules: [], incomplete: isIncomplete } };
}

describe('a rule grants', () => {
  const right: WantedRight = { verb: 'list', group: '', resource: 'endpoints', namespace: '' };
  const rule: ResourceRule = {
    verbs: ['get', 'list'],
    apiGroups: [''],
    resources: ['services', 'endpoints'],
  };
  const status: WantedRight = { ...right, resource: 'endpoints/status' };
  const named: WantedRight = { ...right, name: 'one' };

  test.each<[string, WantedRight, ResourceRule, boolean]>([
    ['what it lists', right, rule, true],
    ['no other verb', { ...right, verb: 'watch' }, rule, false],
    ['no other group', { ...right, group: 'discovery.k8s.io' }, rule, false],
    ['no other resource', { ...right, resource: 'secrets' }, rule, false],
    ['every verb', right, { ...rule, verbs: ['*'] }, true],
    ['every group', { ...right, group: 'a.io' }, { ...rule, apiGroups: ['*'] }, true],
    ['every resource', { ...right, resource: 'secrets' }, { ...rule, resources: ['*'] }, true],
    ['every resource with its subresources', status, { ...rule, resources: ['*'] }, true],
    ['no subresource of a resource', status, rule, false],
    ['a subresource', status, { ...rule, resources: ['endpoints/status'] }, true],
    ['a subresource of every resource', status, { ...rule, resources: ['*/status'] }, true],
    ['not the resource of a subresource', right, { ...rule, resources: ['endpoints/status'] }, false],
    ['not the resource of any subresource', right, { ...rule, resources: ['*/status', '*/'] }, false],
    ['no other subresource of every resource', status, { ...rule, resources: ['*/scale'] }, false],
    ['nothing by a prefix', right, { ...rule, resources: ['endpoint*', 'endpoints/*'] }, false],
    ['every name', named, { ...rule, resourceNames: [] }, true],
    ['a name', named, { ...rule, resourceNames: ['other', 'one'] }, true],
    ['no other name', named, { ...rule, resourceNames: ['other'] }, false],
    ['no name by a pattern', named, { ...rule, resourceNames: ['*'] }, false],
    ['some names, not all', right, { ...rule, resourceNames: ['one'] }, false],
    ['nothing without verbs', right, { apiGroups: ['*'], resources: ['*'] }, false],
    ['nothing with verbs that are no list', right, { ...rule, verbs: 'list' }, false],
    ['nothing with names that are no list', right, { ...rule, resourceNames: null }, false],
    ['nothing with names that are no text', right, { ...rule, resourceNames: [1] }, false],
  ])('%s', (_, wanted, given, expected) => {
    expect(isGranted(wanted, [given])).toBe(expected);
    expect(isGranted(wanted, [{ verbs: ['none'] }, given])).toBe(expected);
  });
});

describe('missing rights', () => {
  const verbs = ['get', 'delete', 'list', 'watch', 'create', 'update', 'patch', 'get', 'list', 'delete'];
  const wanted = verbs.map((verb, i) => ({
    verb,
    group: '',
    resource: 'endpoints',
    namespace: i === 9 ? 'ns' : '',
    index: i,
  }));

  test('are returned in order, with three requests at a time, if no rules are served', async () => {
    const reviews = new Reviews(({ verb }) => verb !== 'delete', notServed);
    const missing = await missingRights(reviews, wanted);
    expect(missing.map(({ index }) => index)).toEqual([1, 9]);
    expect(reviews.mostInFlight).toBe(3);
    expect(reviews.access).toHaveLength(wanted.length);
    expect(reviews.access).toContainEqual({
      resourceAttributes: { verb: 'delete', group: '', resource: 'endpoints', namespace: 'ns' },
    });
  });

  test('are not looked for among those that rules prove', async () => {
    const rules = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }];
    const reviews = new Reviews(
      () => false,
      () => listed(rules),
    );
    const two = { ...wanted[0], verb: 'get', group: '', resource: 'services', namespace: 'ns', index: 10 };
    expect(await missingRights(reviews, [...wanted, two])).toEqual([]);
    expect(reviews.access).toEqual([]);
    // No namespace can be called `-`: what is granted there is granted in every namespace.
    expect(reviews.rules).toEqual([{ namespace: '-' }, { namespace: 'ns' }]);
  });

  test('in a namespace of which one right is wanted take one request', async () => {
    const reviews = new Reviews(() => false, notServed);
    const right = { verb: 'get', group: '', resource: 'secrets', namespace: 'ns', name: 'vc-my' };
    expect(await missingRights(reviews, [right])).toEqual([right]);
    expect(reviews.rules).toEqual([]);
    expect(reviews.access).toMatchObject([{ resourceAttributes: { name: 'vc-my' } }]);
  });

  test.each<[string, Respond]>([
    ['denied', failing(403, 'Forbidden')],
    ['refused', failing(405, 'MethodNotAllowed')],
    ['failed', failing(500, 'InternalError')],
    ['empty', () => ({})],
    ['malformed', () => listed('*')],
    ['of malformed rules', () => listed([null, '*', ['*'], { verbs: '*', apiGroups: '*', resources: '*' }])],
    ['incomplete and empty', () => listed([], true)],
  ])('are found by access reviews if the rules are %s', async (_, rulesFor) => {
    const reviews = new Reviews(({ verb }) => verb !== 'delete', rulesFor);
    const missing = await missingRights(reviews, wanted);
    expect(missing.map(({ index }) => index)).toEqual([1, 9]);
    expect(reviews.access).toHaveLength(wanted.length);
  });

  test('are not known if the API server cannot be reached', async () => {
    const reviews = new Reviews(
      () => true,
      () => {
        throw new TransportError('refused');
      },
    );
    await expect(missingRights(reviews, wanted)).rejects.toBeInstanceOf(TransportError);
  });

  test('a malformed access review is an error', async () => {
    const request = async (): Promise<JsonValue> => ({});
    await expect(
      missingRights({ request }, [{ verb: 'get', group: '', resource: 'x', namespace: '' }]),
    ).rejects.toThrow(/has no status/);
  });

  test('are those that RBAC denies, whatever part of the rules is listed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(grants, { maxLength: 4 }),
        fc.array(rightIn, { maxLength: 12 }),
        fc.constantFrom('all', 'every other', 'none'),
        async (all, rights, part) => {
          const allowed = new Set(all.flatMap(granted));
          const isAllowed = (attributes: JsonObject): boolean =>
            namespacesOf(attributes).some((namespace) => allowed.has(keyOf(attributes, namespace)));
          const reviews = new Reviews(isAllowed, ({ namespace }) => {
            if (part === 'none') return notServed();
            const own = all.filter((grant) => grant.namespace === '' || grant.namespace === namespace);
            const shown = own.filter((_, i) => part === 'all' || i % 2 === 0);
            return listed(
              shown.map(({ rule }) => rule),
              part !== 'all',
            );
          });
          const missing = await missingRights(reviews, rights);
          expect(missing).toEqual(rights.filter((right) => !isAllowed(attributesOf(right))));
        },
      ),
    );
  });
});

// An own account of RBAC: the set of all requests that a list of rules allows.

const VERBS = ['get', 'list'];
const GROUPS = ['', 'a.io'];
const RESOURCES = ['x', 'y', 'x/status', 'y/status', 'x/scale'];
const NAMES = ['', 'one', 'two'];

interface Grant {
  /** '' for a ClusterRoleBinding. */
  readonly namespace: string;
  readonly rule: {
    readonly verbs: string[];
    readonly apiGroups: string[];
    readonly resources: string[];
    readonly resourceNames?: string[];
  };
}

const namespaces = fc.constantFrom('', 'ns', 'other');
const grants: fc.Arbitrary<Grant> = fc.record({
  namespace: namespaces,
  rule: fc.record(
    {
      verbs: fc.subarray(['*', ...VERBS]),
      apiGroups: fc.subarray(['*', ...GROUPS]),
      resources: fc.subarray(['*', '*/status', ...RESOURCES]),
      resourceNames: fc.subarray(['one', 'two']),
    },
    { requiredKeys: ['verbs', 'apiGroups', 'resources'] },
  ),
});
const rightIn: fc.Arbitrary<WantedRight> = fc.record(
  {
    verb: fc.constantFrom(...VERBS),
    group: fc.constantFrom(...GROUPS),
    resource: fc.constantFrom(...RESOURCES),
    namespace: namespaces,
    name: fc.constantFrom('one', 'two'),
  },
  { requiredKeys: ['verb', 'group', 'resource', 'namespace'] },
);

function granted({ namespace, rule }: Grant): string[] {
  const { resourceNames = [] } = rule;
  const all = (list: readonly string[], any: readonly string[]): readonly string[] =>
    list.includes('*') ? any : list;
  const suffixed = rule.resources.includes('*/status') ? RESOURCES.filter((r) => r.endsWith('/status')) : [];
  return all(rule.verbs, VERBS).flatMap((verb) =>
    all(rule.apiGroups, GROUPS).flatMap((group) =>
      [...all(rule.resources, RESOURCES), ...suffixed].flatMap((resource) =>
        (resourceNames.length === 0 ? NAMES : resourceNames).map((name) =>
          [namespace, verb, group, resource, name].join(' '),
        ),
      ),
    ),
  );
}

function attributesOf({ verb, group, resource: path, namespace, name }: WantedRight): JsonObject {
  const [resource = '', subresource] = path.split('/');
  return { verb, group, resource, subresource: subresource ?? '', namespace, name: name ?? '' };
}

function namespacesOf({ namespace }: JsonObject): readonly string[] {
  return typeof namespace === 'string' ? ['', namespace] : [''];
}

function keyOf(attributes: JsonObject, namespace: string): string {
  const text = (key: string): string => {
    const value = attributes[key];
    return typeof value === 'string' ? value : '';
  };
  const subresource = text('subresource');
  const resource = subresource === '' ? text('resource') : `${text('resource')}/${subresource}`;
  return [namespace, text('verb'), text('group'), resource, text('name')].join(' ');
}
