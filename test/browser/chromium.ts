/** The system's Chromium, driven by playwright-core. */

import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

const PATHS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
/** A browser that asks nothing of any network but the page's. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export async function launchChromium(): Promise<Browser> {
  const executablePath = process.env['CHROMIUM'] ?? PATHS.find((path) => existsSync(path));
  if (executablePath === undefined)
    throw new Error('no Chromium found: install the package chromium, or set CHROMIUM to its path');
  return chromium.launch({ executablePath, args: ARGS });
}
