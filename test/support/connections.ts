/** The connections to servers of this process. Must be imported before they are opened. */

import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

const open = new Set<Socket>();

subscribe('http.server.request.start', (message) => {
  const { socket } = message as { readonly socket: Socket }; // as Node documents
  if (open.has(socket)) return;
  open.add(socket);
  socket.on('close', () => open.delete(socket));
});

/** Resets every connection to the server at this URL that has had a request, as a network failure does. The server keeps running. */
export function disconnect({ url }: { readonly url: string }): void {
  const port = Number(new URL(url).port);
  for (const socket of open) if (socket.localPort === port) socket.resetAndDestroy();
}
