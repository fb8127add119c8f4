/** Responses on the bare socket to bytes that Node cannot parse as a request. */

import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { StatusError } from '../../kube/status-error.ts';
import { statusResponse } from '../request/api-response.ts';
import { HEADER_BYTES_MAX, URL_BYTES_MAX } from '../limits.ts';
import { badRequest, headersTooLarge, methodNotAllowed, requestTimeout, urlTooLong } from '../status.ts';

/** Responds on a connection that the client has ended inside a request, with the code of Node's parser for that. */
export function respondToEndOfRequest(socket: Duplex): void {
  const error = new Error('the client ended the connection inside a request');
  respondToBrokenRequest(Object.assign(error, { code: 'HPE_INVALID_EOF_STATE' }), socket);
}

/** Responds to a request that is not HTTP, or incomplete at its deadline. Without a writable socket the connection is only closed. */
export function respondToBrokenRequest(error: Error, socket: Duplex): void {
  const code = 'code' in error ? String(error.code) : '';
  const response = responseOn(socket);
  const isStarted = response?.headersSent === true;
  // After the first bytes of a response, the client would read a second one as part of it.
  if (code === 'ECONNRESET' || (isStarted && !response.writableEnded)) socket.destroy(error);
  // The bytes of a complete response may still wait in the socket.
  else if (isStarted || !socket.writable) endAndLinger(socket);
  else endWith(socket, brokenRequest(code, error), packetOf(error).startsWith('HEAD '));
}

/** Node stores the response that is being written in this member of its socket. */
function responseOn(socket: Duplex & { _httpMessage?: ServerResponse | null }): ServerResponse | undefined {
  return socket._httpMessage ?? undefined;
}

function brokenRequest(code: string, error: Error): StatusError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return isLongUrl(error) ? urlTooLong(URL_BYTES_MAX) : headersTooLarge(`${HEADER_BYTES_MAX} bytes`);
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return requestTimeout();
    case 'HPE_INVALID_EOF_STATE':
      return badRequest('the request ended before it was complete');
    case 'HPE_INVALID_METHOD':
      return isOtherMethod(error) ? methodNotAllowed() : badRequest('the request is not HTTP/1.1');
    default:
      return badRequest('the request is not HTTP/1.1');
  }
}

/** The text of the packet in which the parser failed. */
function packetOf(error: Error): string {
  const packet = 'rawPacket' in error ? error.rawPacket : undefined;
  return Buffer.isBuffer(packet) ? packet.toString('latin1', 0, 2 * HEADER_BYTES_MAX) : '';
}

function isLongUrl(error: Error): boolean {
  const text = packetOf(error);
  const end = text.indexOf('\n');
  return /^[A-Z]+ \//.test(text) && (end < 0 || end > URL_BYTES_MAX);
}

function isOtherMethod(error: Error): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} \/[^\n]* HTTP\/1\.[01]\r?\n/.test(packetOf(error));
}

/** Time for a client to read the error: an immediate close with unread bytes would reset the connection. */
const LINGER_MS = 1000;

/** Writes a complete response on the socket: Node has no request to respond to. */
export function endWith(socket: Duplex, error: StatusError, isHead = false): void {
  const { code, body } = statusResponse(error);
  endAndLinger(
    socket,
    `HTTP/1.1 ${code} ${error.reason}\r\ncontent-type: application/json\r\ncache-control: no-cache, private\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${isHead ? '' : body}`,
  );
}

function endAndLinger(socket: Duplex, lastBytes?: string): void {
  socket.end(lastBytes);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
}
