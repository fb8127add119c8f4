/** The state of the page in its link, as a configuration, and as a test case. */

/** Base64url of the deflated JSON: it stands in the fragment, which a browser never sends to a server. */
export async function encodeState(state) {
  const bytes = await through(
    new CompressionStream('deflate-raw'),
    new TextEncoder().encode(JSON.stringify(state)),
  );
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

/** Undefined where the fragment holds no state. */
export async function decodeState(fragment) {
  const text = fragment.replace(/^#/, '').replaceAll('-', '+').replaceAll('_', '/');
  if (text === '') return undefined;
  try {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const json = await through(new DecompressionStream('deflate-raw'), bytes);
    return JSON.parse(new TextDecoder().decode(json));
  } catch {
    return undefined;
  }
}

async function through(stream, bytes) {
  const response = new Response(new Blob([bytes]).stream().pipeThrough(stream));
  return new Uint8Array(await response.arrayBuffer());
}

/**
 * The patches as a configuration file, below the key `patchList` of `sync.toHost`; without one the editor has a configuration, which is
 * copied as it is.
 */
export function asConfiguration({ patches }, patchList, { name, hostNamespace }) {
  if (patchList === null) return patches;
  // Endpoints are synced by default, EndpointSlices are not.
  const enabled = patchList === 'endpoints' ? '' : '      enabled: true\n';
  return `sync:
  toHost:
    ${patchList}:
${enabled}${indent(patchesKey(patches), 6)}
endpointSyncer:
  name: ${name}
  host: {namespace: ${hostNamespace}}
`;
}

/** One case of an endpoint-syncer-test.yaml beside a config.yaml that holds the patches. */
export function asTestCase({ virtual, host, isReverse }, result) {
  const expected = isReverse
    ? `    reverse:
      expect:
        virtual:
${items(result, 10)}`
    : `    expect:
      host:
${items(result, 8)}`;
  return `config: config.yaml
cases:
  - name: from the playground
    virtual:
${items(virtual, 6)}
    host:${host.trim() === '' ? ' []' : `\n${items(host, 6)}`}
${expected}
`;
}

/** The documents of a YAML stream as items of a list. */
function items(text, spaces) {
  const documents = text.split(/^---$/m).map((document) => document.trim());
  const lists = documents.filter((document) => document !== '').map((document) => indent(document, 2));
  if (lists.length === 0) return `${' '.repeat(spaces)}[]`;
  return lists.map((document) => indent(`- ${document.trimStart()}`, spaces)).join('\n');
}

function patchesKey(patches) {
  return /^patches:/m.test(patches) ? patches.trimEnd() : `patches:\n${indent(patches.trimEnd(), 2)}`;
}

function indent(text, spaces) {
  return text.replace(/^(?=.)/gm, ' '.repeat(spaces));
}
