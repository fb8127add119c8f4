/** The commands of `sh` blocks work in a checkout and are not run by the tests: what they name exists. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`),
];

const COMMANDS = PAGES.filter((page) => page.endsWith('.md')).flatMap((page) =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```sh\n(.*?)^```$/gmsu)]
    .flatMap(([, block = '']) => block.split('\n'))
    .map((line) => line.replace(/\s+#.*$/u, ''))
    .filter((command) => command !== '')
    .map((command) => ({ page, command })),
);

test.each(COMMANDS)('$page: $command', ({ command }) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>; // our own file
  };
  const names = [
    ...command.matchAll(/npm (?:run (?:--silent )?)(?<name>[\w:-]+)|npm (?<own>start|test)\b/gu),
  ];
  for (const { groups } of names) expect(scripts).toHaveProperty([groups?.['name'] ?? groups?.['own'] ?? '']);
  const paths = command.match(/(?:test|src|charts|config|scripts)\/[\w./-]+/gu) ?? [];
  expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('the pages have shell blocks', () => {
  expect(COMMANDS.length).toBeGreaterThan(10);
});

test.each(PAGES.filter((page) => page.endsWith('.md')))(
  '%s: no command prints the credentials of a Secret',
  (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const commands = text
      .split(/[\n`]/u)
      .filter((part) =>
        /\bget secrets? .*(?:-o yaml|-o json\b|data\.(?:config|token|tls\.key|client-key))/u.test(part),
      );
    expect(commands.filter((command) => !/ > \S|\| base64 -d \| (?:grep|openssl) /u.test(command))).toEqual(
      [],
    );
  },
);
