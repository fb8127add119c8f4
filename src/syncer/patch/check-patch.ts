/** Checks a patch without running it: errors and warnings, to which the caller adds file and position; sample values for its path. */

import { parsePath, printPath, type Segment } from './path-syntax.ts';
import { inOwnDialect } from './path-dialects.ts';
import { leadingPath, startsWith, throughLastWildcard } from './reference-parts.ts';
import type { PatchConfig, ReferenceConfig } from './patch-schema.ts';
import { compileExpression, compileFilter } from '../../expressions/front-end/compile-expression.ts';
import type { ElementFacts, MatchFacts } from '../../expressions/front-end/warnings.ts';
import { nearestWord } from '../../base/suggest.ts';
import { labelKeyProblem } from '../../kube/names.ts';
import { groupOf } from '../../kube/object.ts';
import type { JsonValue } from '../../base/json.ts';

/** A problem of one patch, found by parsing its path or its expressions. */
export interface PatchFieldProblem {
  /** Member of the entry: `path`, `expression`, `reverseExpression`, `reference`, `reference.namePath`, … */
  readonly field: string;
  readonly message: string;
  /** Characters (UTF-16 units) from the start of that member's text, for the caret. */
  readonly offset?: number;
  /** Absent: an error. */
  readonly severity?: 'warning';
}

/** One step of a parsed patch path; `null` is a wildcard, an object a filter. */
export type PathSegment = string | number | null | { readonly filter: string };

/** What a copy of the kind needs, and what no patch may set. */
export interface PatchLimits {
  /** Members of the content. */
  readonly members: readonly string[];
  /** Paths with the reason; `*` is any index. */
  readonly hostFields?: Readonly<Record<string, string>>;
}

/** Checks one entry of `patches` whose members have the right types. Never throws. `known`: the fields of its kind; absent: any kind. */
export function checkPatch(
  patch: PatchConfig,
  known?: KnownFields,
  { members, hostFields = {} }: PatchLimits = { members: [] },
): readonly PatchFieldProblem[] {
  const facts = matchFacts(patch.path);
  return [
    ...checkHostField(patch.path, known?.what ?? '', hostFields),
    ...checkHostOwned(patch, members),
    ...checkPath('path', patch.path, known),
    ...checkExpression('expression', patch.expression, facts),
    ...checkExpression('reverseExpression', patch.reverseExpression, facts),
    ...checkReference(patch.reference, facts),
    ...(known === undefined ? [] : checkReferenceKeys(patch)),
  ];
}

export function pathSegments(path: string): readonly PathSegment[] | undefined {
  const parsed = parsePath(path);
  return parsed.ok ? parsed.segments.map(plainSegment) : undefined;
}

function checkHostField(
  path: string,
  what: string,
  hostFields: Readonly<Record<string, string>>,
): readonly PatchFieldProblem[] {
  const steps = pathSegments(path)?.map((step) =>
    typeof step === 'string' && !/^\d+$/.test(step) ? step : '*',
  );
  const field = steps && Object.keys(hostFields).find((one) => `${steps.join('.')}.`.startsWith(`${one}.`));
  if (field === undefined) return [];
  return [{ field: 'path', message: `${field} of ${what} cannot be patched: ${hostFields[field]}` }];
}

/** Without an `expression` the host keeps its own value, and a new copy has none. Of the whole content, that leaves an empty copy. */
function checkHostOwned(patch: PatchConfig, members: readonly string[]): readonly PatchFieldProblem[] {
  if (patch.expression !== undefined || patch.reverseExpression === undefined) return [];
  const segments = pathSegments(patch.path);
  if (segments === undefined || segments.slice(1).some((segment) => segment !== null)) return [];
  const [member = null] = segments;
  const isContent = member === null || (typeof member === 'string' && members.includes(member));
  if (segments.length > 2 || !isContent) return [];
  const what = member === null ? 'the whole object' : `its ${member}`;
  const message =
    `with only a reverseExpression the host keeps ${what}, so every copy would be created without addresses ` +
    'or ports: add expression: value, or name a path further down';
  return [{ field: 'path', message }];
}

function plainSegment(segment: Segment): PathSegment {
  switch (segment.kind) {
    case 'key':
      return segment.key;
    case 'index':
      return segment.index;
    case 'wildcard':
      return null;
    case 'filter':
      return { filter: segment.expression };
    default:
      return segment satisfies never;
  }
}

function checkPath(
  field: string,
  text: string,
  known: KnownFields | undefined,
): readonly PatchFieldProblem[] {
  const parsed = parsePath(text);
  if (!parsed.ok) return [{ field, message: parsed.problem.message, offset: parsed.problem.offset }];
  const { segments } = parsed;
  const filters = segments.flatMap((segment, at) =>
    segment.kind === 'filter' ? checkFilter(field, segment, elementFacts(segments.slice(0, at), known)) : [],
  );
  const own = filters.some(({ severity }) => severity === undefined) ? inOwnDialect(text) : undefined;
  if (own !== undefined && parsePath(own).ok)
    return filters.map((found) => ({
      ...found,
      message: `${found.message.split(';')[0] ?? ''}: write ${own}`,
    }));
  const problem = known && unmatchable(text, segments, known);
  return problem === undefined ? filters : [...filters, { field, ...problem, severity: 'warning' }];
}

function checkFilter(
  field: string,
  { expression, offset: start }: Extract<Segment, { kind: 'filter' }>,
  element: ElementFacts,
): readonly PatchFieldProblem[] {
  const compiled = compileFilter(expression, 0);
  if (!compiled.ok) {
    const { message, offset } = compiled.problem;
    return [{ field, message: `filter: ${withKeyHint(message, expression)}`, offset: start + offset }];
  }
  return compiled.warnings({ element }).map(({ message, offset }) => ({
    field,
    message: `filter: ${message.replaceAll('`value`', '`@`')}`,
    offset: start + offset,
    severity: 'warning',
  }));
}

/** jsonpath-plus has more names behind the @. */
function withKeyHint(message: string, expression: string): string {
  const name = /@(?:property|path|parent\w*|root)\b/u.exec(expression)?.[0];
  if (name === undefined) return message;
  const hint = 'the key is the end of context.path, or write it in brackets: metadata.annotations["key"]';
  return `${name} is not available; ${hint}`;
}

/** Of what a filter at the end of this path decides on. */
function elementFacts(path: readonly Segment[], known: KnownFields | undefined): ElementFacts {
  const names = path.map((segment) => (segment.kind === 'key' ? segment.key : '*'));
  const what = [...names, '*'].join('.').replaceAll('.*', '[*]');
  let fields: Fields | undefined = known?.fields;
  for (const segment of [...path, { kind: 'wildcard' } as const])
    fields = typeof fields === 'object' ? fieldOf(fields, segment) : undefined;
  const isOpen = typeof fields !== 'object' || Object.hasOwn(fields, '*');
  return { what, fields: isOpen ? undefined : Object.keys(fields ?? {}) };
}

function checkExpression(
  field: string,
  text: string | undefined,
  facts: MatchFacts,
): readonly PatchFieldProblem[] {
  if (text === undefined) return [];
  const compiled = compileExpression(text, 0);
  if (compiled.ok)
    return compiled.warnings(facts).map((warning) => ({ field, ...warning, severity: 'warning' }));
  return [{ field, message: compiled.problem.message, offset: compiled.problem.offset }];
}

function matchFacts(path: string): MatchFacts {
  const parsed = parsePath(path);
  if (!parsed.ok) return {};
  const { segments } = parsed;
  const valueType = valueTypeOf(segments);
  return {
    hasWildcard: segments.some(matchesSeveral),
    ...(valueType === undefined ? {} : { valueType }),
  };
}

const SUB_PATHS = ['apiVersionPath', 'kindPath', 'namePath', 'namespacePath'] as const;

/** Built-in kinds without a namespace, by `group/Kind`: nothing of them is imported, and their names are the same everywhere. */
const CLUSTER_SCOPED: ReadonlySet<string> = new Set(
  Object.entries({
    '': 'ComponentStatus Namespace Node PersistentVolume',
    'admissionregistration.k8s.io':
      'MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ' +
      'ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration',
    'apiextensions.k8s.io': 'CustomResourceDefinition',
    'apiregistration.k8s.io': 'APIService',
    'certificates.k8s.io': 'CertificateSigningRequest ClusterTrustBundle',
    'flowcontrol.apiserver.k8s.io': 'FlowSchema PriorityLevelConfiguration',
    'gateway.networking.k8s.io': 'GatewayClass',
    'networking.k8s.io': 'IPAddress IngressClass ServiceCIDR',
    'node.k8s.io': 'RuntimeClass',
    'rbac.authorization.k8s.io': 'ClusterRole ClusterRoleBinding',
    'resource.k8s.io': 'DeviceClass DeviceTaintRule ResourceSlice',
    'scheduling.k8s.io': 'PriorityClass',
    'snapshot.storage.k8s.io': 'VolumeSnapshotClass VolumeSnapshotContent',
    'storage.k8s.io': 'CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass',
    'storagemigration.k8s.io': 'StorageVersionMigration',
  }).flatMap(([group, kinds]) => kinds.split(' ').map((kind) => `${group}/${kind}`)),
);

function checkReference(
  reference: ReferenceConfig | undefined,
  { valueType }: MatchFacts,
): readonly PatchFieldProblem[] {
  if (reference === undefined) return [];
  const { apiVersion, kind, namePath = '', namespacePath = '' } = reference;
  const isOpen = reference.kindPath !== undefined || reference.apiVersionPath !== undefined;
  // With a namespacePath alone, it names a namespace and no object.
  const namesObjects = namePath !== '' || namespacePath === '';
  if (!isOpen && namesObjects && CLUSTER_SCOPED.has(`${groupOf(apiVersion)}/${kind}`))
    return [{ field: 'reference.kind', message: CLUSTER_SCOPED_KIND, offset: 0 }];
  const plain: readonly PatchFieldProblem[] =
    valueType === 'string' && namePath === '' && namespacePath !== ''
      ? [{ field: 'reference.namespacePath', message: PLAIN_STRING, offset: 0, severity: 'warning' }]
      : [];
  const leading = parsePath(leadingPath(reference));
  const each = leading.ok ? throughLastWildcard(leading.segments) : [];
  return [...plain, ...SUB_PATHS.flatMap((name) => checkSubPath(`reference.${name}`, reference[name], each))];
}

function checkReferenceKeys({ path, reference }: PatchConfig): readonly PatchFieldProblem[] {
  const above = parsePath(path);
  if (reference === undefined || !above.ok) return [];
  return SUB_PATHS.flatMap((name): readonly PatchFieldProblem[] => {
    const text = reference[name] ?? '';
    const below = parsePath(text);
    const problem = below.ok ? impossibleKey(text, [...above.segments, ...below.segments]) : undefined;
    return problem === undefined ? [] : [{ field: `reference.${name}`, ...problem, severity: 'warning' }];
  });
}

const CLUSTER_SCOPED_KIND =
  'objects of this kind have no namespace, and the same name on both sides: only namespaced kinds can be referenced; remove the patch';
const PLAIN_STRING =
  'the value is a string: unless it is the JSON text of an object, every object fails; omit namespacePath for a name, which is then that of an object in the same namespace';

/** A path in `reference` has to select exactly one place for each reference in the matched value, which the wildcards of `each` select. */
function checkSubPath(
  field: string,
  text: string | undefined,
  each: readonly Segment[],
): readonly PatchFieldProblem[] {
  if (text === undefined || text === '') return [];
  const parsed = parsePath(text);
  if (!parsed.ok) return [{ field, message: parsed.problem.message, offset: parsed.problem.offset }];
  const { segments } = parsed;
  if (segments.length === 0) {
    return [{ field, message: 'it has to name a member of the matched value', offset: 0 }];
  }
  const filter = segments.find((segment) => segment.kind === 'filter');
  if (filter !== undefined)
    return [
      { field, message: 'a filter is not possible here: it has to name one place', offset: filter.offset },
    ];
  const rest = startsWith(segments, each) ? segments.slice(each.length) : segments;
  if (!rest.some(matchesSeveral)) return [];
  const message =
    'a wildcard is possible here only where namePath has the same one: it has to name one place';
  return [{ field, message, offset: text.indexOf('*') }];
}

function matchesSeveral({ kind }: Segment): boolean {
  return kind === 'wildcard' || kind === 'filter';
}

/** The fields of an object; `*`: any key; a string: no fields below. */
export type Fields = { readonly [field: string]: Fields } | 'value' | 'any';

export interface KnownFields {
  readonly what: string;
  readonly fields: Fields;
}

function unmatchable(
  text: string,
  segments: readonly Segment[],
  known: KnownFields,
): { readonly message: string; readonly offset: number } | undefined {
  const own = inOwnDialect(text);
  const isOther = own !== undefined && isMatchable(own, known);
  if (text.startsWith('/'))
    return {
      message: `this looks like a JSON Pointer, which is not supported; write ${isOther ? own : 'metadata.annotations["key"]'}`,
      offset: 0,
    };
  const found = unmatchableField(text, segments, known);
  return found === undefined || !isOther || found.message.includes(own)
    ? found
    : {
        ...found,
        message: `${found.message.split(/[:,;] (?=write|did you mean|a key)/u)[0] ?? ''}: write ${own}`,
      };
}

function isMatchable(text: string, known: KnownFields): boolean {
  const parsed = parsePath(text);
  return parsed.ok && unmatchableField(text, parsed.segments, known) === undefined;
}

function unmatchableField(
  text: string,
  segments: readonly Segment[],
  known: KnownFields,
): { readonly message: string; readonly offset: number } | undefined {
  let { fields } = known;
  let above = '';
  for (const segment of segments) {
    if (fields === 'any') return undefined;
    const name = segment.kind === 'key' ? segment.key : '';
    const where = above === '' ? known.what : above;
    const offset = Math.max(0, name === '' ? 0 : text.lastIndexOf(name));
    if (fields === 'value')
      return dottedKey(text, segments) ?? { message: `never matches: ${where} has no fields`, offset };
    const next: Fields | undefined = fieldOf(fields, segment);
    // The keys of a mapping have values; what has fields is an element of a list.
    if (typeof next === 'object' && next === fields['*'] && name !== '' && !/^\d+$/.test(name))
      return {
        message: `never matches: ${where} is a list: write ${elementPath(text, where, name)}`,
        offset,
      };
    if (next === undefined) {
      const near = nearestWord(
        name,
        Object.keys(fields).filter((field) => field !== '*'),
      );
      const hint = near === undefined ? '' : `, did you mean "${near}"?`;
      const what = name === '' ? 'elements' : `field ${JSON.stringify(name)}`;
      return { message: `never matches: ${where} has no ${what}${hint}`, offset };
    }
    if (matchesSeveral(segment) && fields['*'] === undefined) return undefined;
    fields = next;
    above = segment.kind === 'key' && !/^\d+$/.test(name) ? name : above;
  }
  return impossibleKey(text, segments);
}

/** Of an annotation or a label that no API server takes. */
function impossibleKey(text: string, segments: readonly Segment[]): ReturnType<typeof unmatchable> {
  const [metadata, map, key] = segments.map((segment) => (segment.kind === 'key' ? segment.key : undefined));
  if (metadata !== 'metadata' || (map !== 'annotations' && map !== 'labels') || key === undefined)
    return undefined;
  if (labelKeyProblem(map === 'annotations' ? key.toLowerCase() : key) === undefined) return undefined;
  const message = `never matches: ${JSON.stringify(key)} cannot be a key of ${map}`;
  return { message, offset: Math.max(0, text.lastIndexOf(key)) };
}

/** How to write a key that stands for elements of a list, also as kustomize does: `ports[name=https]`. */
function elementPath(text: string, list: string, key: string): string {
  const [field = '', ...rest] = key.split('=').map((part) => part.trim());
  if (rest.length === 0 || !/^[\w-]+$/u.test(field)) return `${list}[*].${printPath([key])}`;
  const value = rest.join('=').replaceAll(/["'=]/gu, '');
  const literal = /^\d+$/u.test(value) ? value : JSON.stringify(value);
  return text.replace(`[${key}]`, `[?(@.${field} === ${literal})]`);
}

/** For the path of an annotation or label whose key contains dots: each would begin another field. */
function dottedKey(text: string, segments: readonly Segment[]): ReturnType<typeof unmatchable> {
  const names = segments.map((segment) => (segment.kind === 'key' ? segment.key : undefined));
  const [metadata, map, ...key] = names;
  if (metadata !== 'metadata' || (map !== 'annotations' && map !== 'labels') || key.includes(undefined))
    return undefined;
  // With a backslash before each dot, as in kubectl.
  const path = `metadata.${map}[${JSON.stringify(key.join('.').replaceAll('\\.', '.'))}]`;
  const message = `never matches: a key with dots needs brackets and quotes: ${path}`;
  return { message, offset: text.indexOf(map) + map.length + 1 };
}

function fieldOf(fields: { readonly [field: string]: Fields }, segment: Segment): Fields | undefined {
  const elements = Object.hasOwn(fields, '*') ? fields['*'] : undefined;
  if (segment.kind === 'key')
    return elements ?? (Object.hasOwn(fields, segment.key) ? fields[segment.key] : undefined);
  if (segment.kind === 'index') return elements;
  return elements ?? 'any';
}

/** Values of annotations and labels are strings, ports are numbers. */
function valueTypeOf(segments: readonly Segment[]): 'string' | 'number' | undefined {
  const keys = segments.map((segment) => (segment.kind === 'key' ? segment.key : ''));
  const isMapEntry = keys.length === 3 && (keys[1] === 'annotations' || keys[1] === 'labels');
  if (keys[0] === 'metadata' && isMapEntry) return 'string';
  return keys.at(-3) === 'ports' && keys.at(-1) === 'port' ? 'number' : undefined;
}

const LABELS = ['checkout', 'web', 'team-a', 'edge-team-web', 'a-b-c', '7'];
const ADDRESSES = ['10.0.0.1', '192.0.2.17'];
const TEXTS = [...LABELS, ...ADDRESSES, 'Web', 'example.com/path', 'a,b', 'a b'];
const PORTS = [80, 443, 8080, 10_080];
/** Fields of Endpoints and EndpointSlices that hold DNS labels. */
const LABEL_FIELDS: ReadonlySet<string> = new Set(['hostname', 'name', 'nodeName', 'zone']);

/** Empty if the path can match values of any type. */
export function sampleValues(segments: readonly Segment[]): readonly JsonValue[] {
  const type = valueTypeOf(segments);
  if (type !== undefined) return type === 'string' ? TEXTS : PORTS;
  const [above, last] = [segments.at(-2), segments.at(-1)];
  if (last?.kind === 'key' && LABEL_FIELDS.has(last.key)) return LABELS;
  const isAddress =
    last?.kind === 'key' ? last.key === 'ip' : above?.kind === 'key' && above.key === 'addresses';
  return isAddress && segments[0]?.kind === 'key' && (last?.kind === 'key' || segments[0].key === 'endpoints')
    ? ADDRESSES
    : [];
}
