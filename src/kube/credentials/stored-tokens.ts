/** The tokens of an OIDC user in its kubeconfig. Identity providers may replace a refresh token with each use, so the next one has to be stored,
 * as client-go does: the file is replaced as a whole, and everything else in it stays as it is written there. */

import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isMap, isScalar, isSeq, type Pair, type YAMLMap } from 'yaml';
import { isJsonObject, setOwn, textAt, valueAt, type JsonObject, type JsonValue } from '../../base/json.ts';
import { parseYaml } from '../../base/yaml/document.ts';
import { editableYaml } from '../../base/yaml/write.ts';

export interface Tokens {
  readonly idToken: string;
  readonly refreshToken: string;
}

/** client-go's lock of a kubeconfig. It is held for a refresh, so that two programs do not use one refresh token. */
const LOCK_SUFFIX = '.lock';
const LOCK_POLL_MS = 100;
/** A program that has ended may have left it. */
const LOCK_WAIT_MS = 10_000;

export class StoredTokens {
  readonly #files: readonly string[];
  readonly #user: string;

  /** The first of `files` that has the user is the one. */
  constructor(files: readonly string[], user: string) {
    this.#files = files;
    this.#user = user;
  }

  /** Without the lock where it cannot be taken: the folder may be read-only. */
  async lock(): Promise<Disposable> {
    const path = `${this.#place()?.file ?? ''}${LOCK_SUFFIX}`;
    for (let waitedMs = 0; path !== LOCK_SUFFIX && waitedMs < LOCK_WAIT_MS; waitedMs += LOCK_POLL_MS) {
      try {
        closeSync(openSync(path, 'wx', 0o600));
        return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
      } catch (error) {
        if (!isAlreadyThere(error)) break;
        await wait(LOCK_POLL_MS);
      }
    }
    return { [Symbol.dispose]: () => undefined };
  }

  read(): Tokens | undefined {
    const config = this.#place()?.config;
    return config && { idToken: textAt(config, ID_TOKEN), refreshToken: textAt(config, REFRESH_TOKEN) };
  }

  /** Throws if the file cannot be written. Returns its name. */
  write(tokens: Tokens): string {
    const place = this.#place();
    if (place === undefined) throw new Error(`the kubeconfig has no OIDC user ${this.#user} any more`);
    const { file, text } = place;
    const next = withTokens(text, this.#user, tokens);
    if (next === undefined) throw new Error(`${file} has the tokens in a form that cannot be changed`);
    replaceFile(file, next);
    return file;
  }

  #place(): { readonly file: string; readonly text: string; readonly config: JsonObject } | undefined {
    for (const path of this.#files) {
      try {
        const file = realpathSync(path);
        const text = readFileSync(file, 'utf8');
        const config = configOf(parseYaml(text).json, this.#user);
        if (config !== undefined) return { file, text, config };
      } catch {
        continue; // it was readable before, and may be replaced at this moment
      }
    }
    return undefined;
  }
}

const ID_TOKEN = 'id-token';
const REFRESH_TOKEN = 'refresh-token';
const CONFIG_PATH = ['user', 'auth-provider', 'config'];

function configOf(document: JsonValue, name: string): JsonObject | undefined {
  const users = valueAt(document, ['users']);
  const user = Array.isArray(users) ? users.find((one) => valueAt(one, ['name']) === name) : undefined;
  const config = valueAt(user, CONFIG_PATH);
  return isJsonObject(config) ? config : undefined;
}

/** Undefined: only another text than that of the tokens would have to be changed. */
export function withTokens(text: string, user: string, tokens: Tokens): string | undefined {
  const fields = { [ID_TOKEN]: tokens.idToken, [REFRESH_TOKEN]: tokens.refreshToken };
  const edits = Object.entries(fields).map(([key, value]) => editOf(text, user, { key, value }));
  let next = text;
  for (const edit of edits.toSorted((a, b) => (b?.from ?? 0) - (a?.from ?? 0))) {
    if (edit === undefined) return undefined;
    next = next.slice(0, edit.from) + edit.text + next.slice(edit.to);
  }
  const wanted = parseYaml(text).json;
  const config = configOf(wanted, user);
  for (const [key, value] of Object.entries(fields)) if (config !== undefined) setOwn(config, key, value);
  return isDeepStrictEqual(parseYaml(next).json, wanted) ? next : undefined;
}

interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

function editOf(
  text: string,
  user: string,
  { key, value }: { readonly key: string; readonly value: string },
): Edit | undefined {
  const users = editableYaml(text).get('users', true);
  const entry = isSeq(users) ? users.items.find((one) => isMap(one) && one.get('name') === user) : undefined;
  const config = isMap(entry) ? entry.getIn(CONFIG_PATH, true) : undefined;
  if (!isMap(config)) return undefined;
  const quoted = JSON.stringify(value);
  const found = pairOf(config, key);
  if (found === undefined) return insertion(text, config, `${JSON.stringify(key)}: ${quoted}`);
  const range = isScalar(found.value) ? found.value.range : undefined;
  if (!range) return undefined;
  const [from, to] = range;
  const old = text.slice(from, to);
  return { from, to, text: `${old === '' ? ' ' : ''}${quoted}${old.endsWith('\n') ? '\n' : ''}` };
}

/** Before the refresh token, which is there, or it could not have been used. */
function insertion(text: string, config: YAMLMap, pair: string): Edit | undefined {
  const next = pairOf(config, REFRESH_TOKEN)?.key;
  const [from] = isScalar(next) ? (next.range ?? []) : [];
  if (from === undefined) return undefined;
  const indent = text.slice(text.lastIndexOf('\n', from - 1) + 1, from);
  return { from, to: from, text: `${pair}${config.flow === true ? ', ' : `\n${indent}`}` };
}

function pairOf(map: YAMLMap, key: string): Pair | undefined {
  return map.items.find((pair) => isScalar(pair.key) && pair.key.value === key);
}

/** With the mode and the owner of the file. In place, where its folder takes no other file, or it is mounted. */
function replaceFile(file: string, text: string): void {
  const { mode, uid, gid } = statSync(file);
  const next = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    writeFileSync(next, text, { mode: 0o600, flag: 'wx', flush: true });
    if (statSync(next).uid !== uid) chownSync(next, uid, gid);
    chmodSync(next, mode);
    renameSync(next, file);
  } catch {
    rmSync(next, { force: true });
    writeFileSync(file, text, { flush: true });
  }
}

function isAlreadyThere(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EEXIST';
}
