/**
 * Undici's pool, client and connector alone: the package's main file also loads fetch, WebSocket and caches, which this daemon never uses
 * and which cost 8 MiB of resident memory.
 */

declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici';
  export default Pool;
}

declare module 'undici/lib/dispatcher/client.js' {
  import { Client } from 'undici';
  export default Client;
}

declare module 'undici/lib/core/connect.js' {
  import { buildConnector } from 'undici';
  export default buildConnector;
}
