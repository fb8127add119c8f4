/** What commands print on standard output of texts that are not the user's own: no character that controls a terminal, or the direction of text. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatChange } from '../../../src/cli/live/diff.ts';
import { formatListing } from '../../../src/cli/output/listing.ts';
import { printObject } from '../../../src/cli/output/objects.ts';
import { formatProblems, paintFor } from '../../../src/cli/output/terminal.ts';
import { ENDPOINTS, type KubeObject } from '../../../src/kube/object.ts';
import { testFolder } from '../../support/test-folder.ts';
import { capturedRun } from '../captured-run.ts';

/** C0 but for the end of a line, C1, and what changes the direction of text or is no character. */
const CONTROLLING = /(?!\n)[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u;
const CHARACTERS =
  '\u0000 \u0007 \u001b[31m \u001b]0;title\u0007 \r \t \u007f \u0085 \u009b31m \u061c \u200e \u200f \u202a \u202e \u2066 \u2069 a ä " \' :'
    .split(' ')
    .concat('\n', ' ', '\u2028', '\u2029', '\ufeff', ': ', '# ', '- ');
const anyForeign = fc
  .array(fc.constantFrom(...CHARACTERS), { minLength: 1, maxLength: 8 })
  .map((all) => all.join(''));
/** What YAML and JSON files can hold only as escapes; as a line of its own it would be another error. */
const HOSTILE = 'x\u001b[31m\u009b1m\u202e\u2066y\u0085\u2028z';
const folder = testFolder();
const plain = paintFor({ isTTY: false });

/** The first character of the text that no output may hold, as hexadecimal digits. */
function controlIn(text: string): string | undefined {
  return CONTROLLING.exec(text)?.[0].codePointAt(0)?.toString(16);
}

describe('printers', () => {
  test.each(['table', 'wide', 'name', 'json', 'yaml'])('a list as %s', (format) => {
    fc.assert(
      fc.property(anyForeign, (text) => {
        const row = {
          cells: [text, 'b'],
          wideCells: [text],
          name: text,
          json: { [text]: text, list: [text] },
        };
        expect(
          controlIn(formatListing({ heading: ['A', 'B'], wideHeading: ['C'], rows: [row] }, format)),
        ).toBeUndefined();
      }),
    );
  });

  test.each(['yaml', 'json'] as const)('an object as %s', (format) => {
    fc.assert(
      fc.property(anyForeign, (text) => {
        expect(
          controlIn(printObject({ metadata: { name: text, annotations: { [text]: text } } }, format)),
        ).toBeUndefined();
      }),
    );
  });

  test('a difference', () => {
    fc.assert(
      fc.property(anyForeign, (text) => {
        const object = (value: string): KubeObject => ({
          apiVersion: 'v1',
          kind: 'Endpoints',
          metadata: { namespace: text, name: text, annotations: { [text]: value } },
        });
        const sides = { before: object('a'), after: object(text + text) };
        const change = { cluster: 'host', resource: ENDPOINTS, reason: text, ...sides } as const;
        expect(controlIn(formatChange(change, true, plain) ?? '')).toBeUndefined();
      }),
    );
  });

  test('problems', () => {
    fc.assert(
      fc.property(anyForeign, (text) => {
        const place = { file: text, line: 1, column: 1, path: text, excerpt: '' };
        expect(
          controlIn(formatProblems([{ ...place, severity: 'error', message: text }], plain)),
        ).toBeUndefined();
      }),
    );
  });
});

describe('commands', () => {
  const file = (name: string, value: unknown): string => folder.write(name, JSON.stringify(value));
  const endpoints = {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'web', namespace: 'shop', annotations: { 'example.com/a': HOSTILE } },
  };
  const patch = { path: `metadata.annotations["${HOSTILE}"]`, expression: 'value' };
  const config = file('config.yaml', {
    sync: { toHost: { endpoints: { patches: [patch] } } },
    endpointSyncer: { name: 'vc', host: { namespace: 'team-a' } },
  });
  const object = file('object.json', endpoints);
  const cases = file('a.endpoint-syncer-test.yaml', {
    config,
    cases: [
      {
        name: `case ${HOSTILE}`,
        virtual: [endpoints],
        expect: {
          host: [{ kind: 'Endpoints', metadata: { annotations: { 'example.com/a': `${HOSTILE}!` } } }],
        },
      },
    ],
  });
  const wrong = file('wrong.yaml', { [HOSTILE]: HOSTILE, endpointSyncer: { name: HOSTILE } });

  test.each([
    ['render', ['render', '--config', config, '-f', object]],
    ['render -o json', ['render', '--config', config, '-f', object, '-o', 'json']],
    ['patch', ['patch', '--config', config, '-f', object]],
    ['test', ['test', cases]],
    ['test --coverage', ['test', cases, '--coverage']],
    ['test -o json', ['test', cases, '-o', 'json']],
    ['validate', ['validate', wrong]],
    ['validate -o json', ['validate', wrong, '-o', 'json']],
    ['eval', ['eval', 'value + "!"', '--value', JSON.stringify(HOSTILE)]],
    ['names', ['names', `shop/${HOSTILE}`, '--name', 'vc', '--host-namespace', 'team-a']],
  ])('%s', async (_, args) => {
    const { out, err } = await capturedRun(args);
    expect(out + err).not.toBe('');
    expect(controlIn(out)).toBeUndefined();
    expect(controlIn(err)).toBeUndefined();
  });
});
