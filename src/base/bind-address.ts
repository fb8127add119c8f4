/** `host:port` of a listening socket. */

export interface BindAddress {
  /** '' listens on every address. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

const PORT = '[0-9]{1,4}|[0-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]';

/** The text of a bind address, for the configuration's JSON Schema too. */
export const BIND_ADDRESS_PATTERN = String.raw`^(?:\[([0-9a-fA-F:.]+)\]|([^\s:\[\]/]*)):(${PORT})$`;

const ADDRESS = new RegExp(BIND_ADDRESS_PATTERN, 'u');

/** Reads `127.0.0.1:8080`, `localhost:0`, `[::1]:8080`, `:8080`; undefined for anything else. */
export function parseBindAddress(text: string): BindAddress | undefined {
  const [, bracketed, plain = '', port] = ADDRESS.exec(text) ?? [];
  if (port === undefined) return undefined;
  return { host: bracketed ?? plain, port: Number(port) };
}
