/** `host:port` of a listening socket. */

export interface BindAddress {
  /** '' listens on every address. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

const ADDRESS = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/]*)):(\d{1,5})$/u;

/** Reads `127.0.0.1:8080`, `localhost:0`, `[::1]:8080`, `:8080`; undefined for anything else. */
export function parseBindAddress(text: string): BindAddress | undefined {
  const [, bracketed, plain = '', port] = ADDRESS.exec(text) ?? [];
  if (port === undefined || Number(port) > 65_535) return undefined;
  return { host: bracketed ?? plain, port: Number(port) };
}
