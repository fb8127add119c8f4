/** A URL on the command line. */

import { InvalidArgumentError } from 'commander';

/** Throws for anything but an https URL. */
export function httpsUrl(text: string): string {
  if (text.startsWith('https://') && URL.canParse(text)) return text;
  throw new InvalidArgumentError('It must be an https:// URL such as https://127.0.0.1:8443.');
}
