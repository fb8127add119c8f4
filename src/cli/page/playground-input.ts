/** Reads and checks the texts of the page's editors. */

import type { ConfigProblem } from '../../base/errors.ts';
import { ownValue, type JsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import { parseObjects } from '../objects/object-files.ts';
import { inNamespace } from '../offline/offline-sync.ts';

/** One request of the page: the texts of its editors. */
export interface RunInput {
  /** A list of patches, `{patches: […]}`, or a configuration. */
  readonly patches: string;
  readonly virtual: string;
  readonly host: string;
  readonly isReverse: boolean;
}

export type Editor = 'patches' | 'virtual' | 'host';

/** Throws where a text is not a string: the page always sends strings. */
export function readInput(body: JsonObject): RunInput {
  const text = (key: string): string => {
    const value = ownValue(body, key) ?? '';
    if (typeof value !== 'string') throw new Error(`${key} must be a string`);
    return value;
  };
  return {
    patches: text('patches'),
    virtual: text('virtual'),
    host: text('host'),
    isReverse: body['isReverse'] === true,
  };
}

export interface EditorObjects {
  readonly objects: readonly KubeObject[];
  readonly problems: readonly ConfigProblem[];
}

/** `namespace`: of objects that have none. */
export function readEditor(text: string, namespace: string): EditorObjects {
  const problems: ConfigProblem[] = [];
  const objects = inNamespace(parseObjects('', text, problems), namespace);
  return { objects, problems };
}

/** The problems of one editor as the page shows them. */
export function placed(editor: Editor, problems: readonly ConfigProblem[]) {
  return problems.map(({ line, column, path, message, severity }) => ({
    editor,
    line,
    column,
    message: path === '' ? message : `${path}: ${message}`,
    severity,
  }));
}
