/** Converts YAML text to JSON text, in less time than a turn of the event loop may take whatever the text is. */

import {
  Composer,
  type CST,
  type Document,
  isScalar,
  Lexer,
  LineCounter,
  Parser,
  type Tags,
  visit,
  type YAMLParseError,
} from 'yaml';
import {
  BODY_BYTES_MAX,
  FIELD_PROBLEMS_MAX,
  YAML_ALIASES_MAX,
  YAML_TOKENS_MAX,
  YAML_VALUES_MAX,
} from '../limits.ts';

export type YamlOutcome =
  | { readonly kind: 'read'; readonly json: string; readonly duplicates: readonly string[] }
  | { readonly kind: 'several-documents' }
  /** `reason` names a position and never quotes the body, which may hold a secret. */
  | { readonly kind: 'rejected'; readonly reason: string };

/** Never throws. Texts above `YAML_BYTES_MAX` may take long. */
export function readYaml(text: string): YamlOutcome {
  if (hasTooManyTokens(text)) {
    return rejected(`the YAML has more than ${YAML_TOKENS_MAX} tokens; send JSON`);
  }
  const lines = new LineCounter();
  const parsed = parseText(text, lines);
  if (!parsed) return rejected('the YAML is nested too deeply'); // the parser is recursive
  const [document, second] = parsed.documents;
  if (second) return { kind: 'several-documents' };
  const [problem] = parsed.errors;
  if (problem) return rejected(problemText(problem, lines));
  if (!document) return { kind: 'read', json: 'null', duplicates: [] };
  try {
    const value: unknown = document.toJS({ maxAliasCount: YAML_ALIASES_MAX });
    if (expandedSize(value) > YAML_VALUES_MAX) return rejected('its aliases expand to too many values');
    const json = JSON.stringify(value ?? null); // JSON has no dates and no undefined
    if (json.length > BODY_BYTES_MAX)
      return rejected('its aliases expand to more bytes than a body may have');
    return { kind: 'read', json, duplicates: duplicateKeys(document, lines) };
  } catch {
    return rejected('the YAML cannot be resolved');
  }
}

function rejected(reason: string): YamlOutcome {
  return { kind: 'rejected', reason };
}

/** The time of parsing depends on the number of tokens, not on the bytes; splitting the text takes a tenth of it. */
function hasTooManyTokens(text: string): boolean {
  let count = 0;
  for (const _token of new Lexer().lex(text)) if (++count > YAML_TOKENS_MAX) return true;
  return false;
}

/**
 * The number of values in the JSON text of `root`, each counted as often as aliases repeat it. The parser's own limit misses aliases of
 * empty collections, and twenty lines of them expand to more than fits into memory. Throws for a value that contains itself.
 */
function expandedSize(root: unknown): number {
  const sizes = new Map<object, number>();
  const open = new Set<object>();
  const sizeOf = (value: unknown): number => {
    if (typeof value !== 'object' || value === null) return 1;
    const known = sizes.get(value);
    if (known !== undefined) return known;
    if (open.has(value)) throw new Error('the value contains itself');
    open.add(value);
    let size = 1;
    for (const member of Object.values(value)) size += sizeOf(member);
    open.delete(value);
    sizes.set(value, size);
    return size;
  };
  return sizeOf(root);
}

interface ParsedText {
  readonly documents: readonly Document.Parsed[];
  /** Of the first document; of the text when it has none. */
  readonly errors: readonly YAMLParseError[];
}

/** Undefined for a text that is nested too deeply. */
function parseText(text: string, lineCounter: LineCounter): ParsedText | undefined {
  const options = {
    version: '1.1',
    customTags: kubernetesTags,
    uniqueKeys: false,
    logLevel: 'silent',
    // An excerpt in each of very many errors takes quadratic time.
    prettyErrors: false,
    lineCounter,
  } as const;
  try {
    const tokens = new Parser(lineCounter.addNewLine).parse(text);
    const composer = new Composer(options);
    const documents = [...composer.compose(untilError(tokens))];
    return { documents, errors: documents[0]?.errors ?? composer.streamInfo().errors };
  } catch {
    return undefined;
  }
}

/** Only the first error is reported, and each further one would take time. */
function* untilError(tokens: Iterable<CST.Token>): Generator<CST.Token, void> {
  for (const token of tokens) {
    yield token;
    if (token.type === 'error') return;
  }
}

/** YAML 1.1 as Kubernetes parses it: `yes` is true and `<<` merges, but dates and times are text. */
function kubernetesTags(tags: Tags): Tags {
  return tags.filter((tag) => {
    if (typeof tag === 'string') return true;
    return tag.format !== 'TIME' && !OTHER_TAGS.includes(tag.tag);
  });
}

const OTHER_TAGS = ['timestamp', 'omap', 'pairs', 'set'].map((name) => `tag:yaml.org,2002:${name}`);

function problemText({ code, pos }: YAMLParseError, lines: LineCounter): string {
  const { line, col } = lines.linePos(pos[0]);
  return `yaml: ${code.toLowerCase().replaceAll('_', ' ')} at line ${line}, column ${col}`;
}

/** One message for each key that a map sets twice. The parser's own check takes quadratic time. */
function duplicateKeys(document: Document.Parsed, lines: LineCounter): string[] {
  const found: string[] = [];
  visit(document, {
    Map: (_key, { items }) => {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const name = String(key.value);
        if (seen.has(name) && found.length < FIELD_PROBLEMS_MAX) {
          const { line } = lines.linePos(key.range?.[0] ?? 0);
          found.push(`line ${line}: key ${JSON.stringify(name)} already set in map`);
        }
        seen.add(name);
      }
    },
  });
  return found;
}
