/** Paths as jq, yq, kubectl, Kustomize and JSON Pointer write them, in the notation of patches: for hints, not to be run. */

/** How this program writes the path; undefined: it is in no other dialect that is known. The caller checks that the result is a path. */
export function inOwnDialect(text: string): string | undefined {
  const own = pointerPath(text) ?? DIALECTS.reduce(rewritten, text.trim());
  return own === text.trim() ? undefined : own;
}

function rewritten(path: string, [form, replacement]: Dialect): string {
  return typeof replacement === 'string' ? path.replace(form, replacement) : path.replace(form, replacement);
}

/** A literal without quotes or with any, as text, or as a number. */
function literal(value: string): string {
  const plain = value.trim().replace(/^["']|["']$/gu, '');
  return /^\d+$/u.test(value.trim()) ? plain : JSON.stringify(plain);
}

function filter(_: string, field: string, value: string): string {
  return `[?(@.${field} === ${literal(value)})]`;
}

function quotedKey(_: string, key: string): string {
  return `["${key.replaceAll('\\.', '.')}"]`;
}

function bracketKey(text: string, _quote: string, key: string): string {
  return quotedKey(text, key);
}

type Dialect = readonly [form: RegExp, replacement: string | ((...found: string[]) => string)];

/** In this order. */
const DIALECTS: readonly Dialect[] = [
  // kubectl: {.metadata.name}
  [/^\{(.*)\}$/u, '$1'],
  // jq and yq: .subsets[].ports[] | select(.name == "https") | .port, map(…), an optional member
  [/\[\]/gu, '[*]'],
  [/(?:\[\*\])? ?\| ?select\(\.([\w-]{1,63}) ?==? ?([^()]{1,253})\)/gu, filter],
  [/ ?\| ?\.?$/u, ''],
  [/ ?\| ?(?=\.)/gu, ''],
  [/\?(?=\.|\[|$)/gu, ''],
  // Kustomize: ports.[name=https], ports[name='https']
  [/\.?\[([A-Za-z][\w-]{0,62}) ?={1,3} ?([^\]]{1,253})\]/gu, filter],
  // RFC 9535: [?@.name == 'https']
  [/\[\? ?(@[^\]()]{1,253})\]/gu, '[?($1)]'],
  // jsonpath-plus: [?(@property === "key")]
  [/\[\?\(@property ?={2,3} ?(["'][^"'\]]{1,317}["'])\)\]/gu, '[$1]'],
  // kubectl: annotations['example\.com/owner'], annotations.example\.com/owner
  [/\[(["']?)((?:[\w/-]{1,63}\\\.){1,20}[\w/-]{1,317})\1\]/gu, bracketKey],
  [/\.((?:[\w/-]{1,63}\\\.){1,20}[\w/-]{1,317})/gu, quotedKey],
  // yq: subsets.[0]
  [/(?<=\w)\.(?=\[)/gu, ''],
];

/** JSON Pointer, also without the first slash: `/metadata/annotations/example.com~1owner`. */
function pointerPath(text: string): string | undefined {
  const [first = '', ...rest] = text.trim().split('/');
  const isPointer =
    first === '' || first === '#' || /^(?:metadata|subsets|endpoints|ports|spec)$/u.test(first);
  if (rest.length === 0 || !isPointer || /[[\]"']/u.test(text)) return undefined;
  const steps = first === '' || first === '#' ? rest : [first, ...rest];
  return steps.reduce((path, step, at) => {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (/^\d+$/u.test(key)) return `${path}[${key}]`;
    if (key === '-' || key === '*') return `${path}[*]`;
    if (!/^[A-Za-z][\w-]*$/u.test(key)) return `${path}[${JSON.stringify(key)}]`;
    return at === 0 ? key : `${path}.${key}`;
  }, '');
}
