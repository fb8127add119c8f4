/** `--port` of the commands that serve a page. */

const PORT_MAX = 65_535;

/** Undefined, with an error on standard error, where the text is not a port. */
export function parsePagePort(text: string): number | undefined {
  const port = Number(text);
  if (text.trim() !== '' && Number.isInteger(port) && port >= 0 && port <= PORT_MAX) return port;
  process.stderr.write(`error: --port must be a number from 0 to ${PORT_MAX}, found ${text}\n`);
  return undefined;
}
