/**
 * Fails on regular expressions in `src` whose time grows faster than the text, unless {@link BOUNDED} says why the text is short. One of
 * them once took minutes for a path of a patch with a long name.
 */

import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tokenizer, tokTypes } from 'acorn';
import { checkSync } from 'recheck';

/** Quadratic and cubic time is harmless for these, by the source of the pattern. */
const BOUNDED: ReadonlyMap<string, string> = new Map([
  [String.raw`\/+$`, 'a URL from configuration or a flag'],
  [String.raw`^.*? cannot be handled as a [^:]*: `, 'the message of this program begins with this text'],
  [String.raw`\((.*)\)`, 'the notation of a schema in the source'],
  [String.raw`[.-]+$`, 'at most 100 characters'],
  [String.raw`^(\s*)[\w"'.-]+:\n\1- `, "the user's own test file"],
  [String.raw`:(?!latest$)[^/]+$`, 'an image in the cluster of the demo'],
  [String.raw`<(script|style)[^]*?<\/\1>`, 'at most 4096 characters'],
  [String.raw`<[^>]*>`, 'at most 4096 characters'],
  [String.raw`^[^a-z0-9]+|[^a-z0-9]+$`, 'part of an object name'],
  [String.raw`\\(?![1-9k])[^]|\[(?:\\[^]|[^\]\\])*\]`, 'a pattern in an expression of at most 16 KiB'],
]);

interface Found {
  readonly file: string;
  readonly pattern: string;
  readonly flags: string;
}

const all = globSync('src/**/*.ts').toSorted().flatMap(regexpsOf);
const unique = [...new Map(all.map((found) => [`/${found.pattern}/${found.flags}`, found])).values()];
const problems = unique.flatMap(problemOf);
const unused = [...BOUNDED.keys()].filter((pattern) => !all.some((found) => found.pattern === pattern));
for (const problem of [...problems, ...unused.map((pattern) => `no file has the bounded ${pattern}`)])
  process.stderr.write(`${problem}\n`);
if (problems.length + unused.length > 0) process.exit(1);
process.stdout.write(`${unique.length} regular expressions take linear time, or read a short text\n`);

function regexpsOf(file: string): Found[] {
  const source = stripTypeScriptTypes(readFileSync(file, 'utf8'));
  const found: Found[] = [];
  for (const token of tokenizer(source, { ecmaVersion: 'latest', sourceType: 'module' })) {
    if (token.type !== tokTypes.regexp) continue;
    const { value } = token as unknown as { value: Pick<Found, 'pattern' | 'flags'> }; // acorn's types lack the value
    found.push({ file, ...value });
  }
  return found;
}

function problemOf({ file, pattern, flags }: Found): string[] {
  const result = check(pattern, flags.replace('v', 'u'));
  if (result.status === 'safe') return [];
  const isBounded =
    BOUNDED.has(pattern) && result.status === 'vulnerable' && result.complexity.type === 'polynomial';
  if (isBounded) return [];
  const what =
    result.status === 'vulnerable'
      ? `takes ${result.complexity.summary} time for ${result.attack.pattern}`
      : `is not known to be fast (${result.error.kind})`;
  return [`${file}: /${pattern}/${flags} ${what}`];
}

/** The automaton proves its result. What it does not know, such as lookaround, is searched with a fixed seed. */
function check(pattern: string, flags: string): ReturnType<typeof checkSync> {
  const proven = checkSync(pattern, flags, { timeout: 20_000, checker: 'automaton' });
  if (proven.status !== 'unknown') return proven;
  return checkSync(pattern, flags, { timeout: 20_000, checker: 'fuzz', randomSeed: 1 });
}
