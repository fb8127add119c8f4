/** The HTTP server of the page: its own files, the editor's modules, and the JSON calls that it is given. Loopback only. */

import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { TerminalError, messageOf } from '../base/errors.ts';
import { collectInput } from '../base/input-buffer.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../base/json.ts';

const ASSET = /^\/assets\/[a-z]+\.(?:css|js)$/u;
const BODY_BYTES_MAX = 2 * 1024 * 1024;

/** Answers one call with a JSON value. A thrown error is answered with status 400 and its message. */
type PageCall = (body: JsonObject) => Promise<JsonValue>;

export interface PageServerOptions {
  /** 0: any free port. */
  readonly port: number;
  /** By path, such as `/api/run`; POST with a JSON object. */
  readonly calls: Readonly<Record<string, PageCall>>;
  readonly feeds: Readonly<Record<string, Feed>>;
}

/** Server-sent events of one path; sends them until the signal is aborted. */
type Feed = (send: (event: JsonObject) => void, signal: AbortSignal) => void;

export interface PageServer extends AsyncDisposable {
  /** `http://127.0.0.1:40123/` */
  readonly url: string;
}

/** Rejects with a `TerminalError` when the port is not available. */
export async function startPageServer(options: PageServerOptions): Promise<PageServer> {
  // In the package, main.js contains them.
  const modules = import.meta.url.endsWith('.ts') ? findPageModules() : NO_MODULES;
  const closing = new AbortController();
  let port = options.port;
  const server = createServer((request, response) => {
    const denial = denialOf(request, port);
    if (denial !== undefined) return sendText(response, 403, denial);
    const path = (request.url ?? '/').split('?')[0] ?? '/';
    if (request.method === 'POST') return void answerCall(options.calls[path], request, response);
    if (request.method !== 'GET') return sendText(response, 405, 'only GET and POST are served');
    const feed = options.feeds[path];
    if (feed !== undefined) return openFeed(feed, response, closing.signal);
    return sendFile(path, response, modules);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const message = `cannot listen on 127.0.0.1:${port}: ${cause.message}; choose another --port`;
      reject(new TerminalError(message, { cause }));
    });
    server.listen(options.port, '127.0.0.1', resolve);
  });
  ({ port } = server.address() as AddressInfo); // it listens on a TCP port
  return {
    url: `http://127.0.0.1:${port}/`,
    async [Symbol.asyncDispose]() {
      closing.abort();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function sendFile(path: string, response: ServerResponse, modules: PageModules): void {
  if (path === '/') {
    const nonce = randomBytes(16).toString('base64');
    const html = (readAsset('/assets/page.html') ?? '')
      .replaceAll('{{nonce}}', nonce)
      .replace('{{importmap}}', modules.importMap);
    response.setHeader('content-security-policy', contentPolicy(nonce));
    return send(response, 'text/html; charset=utf-8', html);
  }
  const text = ASSET.test(path) ? readAsset(path) : modules.read(path);
  if (text === undefined) return sendText(response, 404, 'not found');
  return send(response, `text/${path.endsWith('.css') ? 'css' : 'javascript'}; charset=utf-8`, text);
}

/** Scripts and styles of this page only, no connection elsewhere, in no frame. */
function contentPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' 'nonce-${nonce}'`,
    `style-src 'self' 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Undefined: there is none; in the package, main.js contains the other scripts. */
function readAsset(path: string): string | undefined {
  const file = new URL(`.${path}`, import.meta.url);
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

async function answerCall(
  call: PageCall | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (call === undefined) return sendText(response, 404, 'not found');
  try {
    const result = await call(await readJson(request));
    send(response, 'application/json', JSON.stringify(result));
  } catch (error) {
    sendText(response, 400, messageOf(error));
  }
}

async function readJson(request: IncomingMessage): Promise<JsonObject> {
  if (!(request.headers['content-type'] ?? '').startsWith('application/json'))
    throw new Error('the body must be application/json');
  const body = await collectInput(request as AsyncIterable<Buffer>, BODY_BYTES_MAX);
  if (body === undefined) throw new Error(`the body is larger than ${BODY_BYTES_MAX} bytes`);
  const value = JSON.parse(body.toString('utf8')) as JsonValue; // what JSON.parse returns
  if (!isJsonObject(value)) throw new Error('the body must be a JSON object');
  return value;
}

function openFeed(feed: Feed, response: ServerResponse, closing: AbortSignal): void {
  const closed = new AbortController();
  response.on('close', () => closed.abort());
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  feed(
    (event) => response.write(`data: ${JSON.stringify(event)}\n\n`),
    AbortSignal.any([closed.signal, closing]),
  );
}

function send(response: ServerResponse, type: string, body: string): void {
  response.writeHead(200, {
    'content-type': type,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  });
  response.end(body);
}

function sendText(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' });
  response.end(`${message}\n`);
}

// Allows requests of a browser on this machine that shows this page, and denies those of other sites.

/** Why a request is denied; undefined: it is allowed. `port` is the one that the server listens on. */
export function denialOf({ method, headers }: IncomingMessage, port: number): string | undefined {
  const own = ['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`);
  // DNS rebinding: a site whose name resolves to 127.0.0.1 sends its own name here.
  if (!own.includes(headers.host ?? '')) return `unexpected Host header; open http://127.0.0.1:${port}`;
  const { origin } = headers;
  const isReading = method === 'GET' || method === 'HEAD';
  if (origin === undefined) return isReading ? undefined : 'a request that writes needs an Origin header';
  return own.some((host) => origin === `http://${host}`)
    ? undefined
    : 'requests of another origin are denied';
}

// The ES modules of the editor's packages, served from node_modules as they are, and the import map that finds them.

const ROOTS = [
  '@codemirror/autocomplete',
  '@codemirror/commands',
  '@codemirror/lang-yaml',
  '@codemirror/language',
  '@codemirror/lint',
  '@codemirror/merge',
  '@codemirror/state',
  '@codemirror/view',
  '@lezer/highlight',
];

type PageModules = ReturnType<typeof findPageModules>;

const NO_MODULES: PageModules = { importMap: '{}', read: () => undefined };

/** What a module imports from packages. */
const PACKAGE_IMPORT = /\bfrom ['"]([@\w][\w@/-]{0,99})['"];$/gmu;

/** `read` reads a module by its URL path when it is requested. Throws where a package is not installed. */
export function findPageModules() {
  const files = new Map<string, string>();
  const add = (name: string): void => {
    if (files.has(name)) return;
    const file = fileURLToPath(import.meta.resolve(name));
    files.set(name, file);
    for (const [, imported = ''] of readFileSync(file, 'utf8').matchAll(PACKAGE_IMPORT)) add(imported);
  };
  for (const name of ROOTS) add(name);
  const imports = Object.fromEntries([...files.keys()].map((name) => [name, `/modules/${name}.js`]));
  return {
    // {"imports": {"@codemirror/state": "/modules/@codemirror/state.js", …}}
    importMap: JSON.stringify({ imports }),
    read(path: string): string | undefined {
      const file = files.get(/^\/modules\/(.*)\.js$/u.exec(path)?.[1] ?? '');
      return file === undefined ? undefined : readFileSync(file, 'utf8');
    },
  };
}
