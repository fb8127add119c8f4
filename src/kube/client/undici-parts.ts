/** Undici's pool, client and connector. These are not entry points of the package; test/private-imports.test.ts fails when they move. */

export { default as buildConnector } from 'undici/lib/core/connect.js';
export { default as Client } from 'undici/lib/dispatcher/client.js';
export { default as Pool } from 'undici/lib/dispatcher/pool.js';
