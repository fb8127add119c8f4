/** A text that controls a terminal, and how it looks where people read it. */

import { expect } from 'vitest';

/** Sets the title, clears the screen with C0 and with C1, hides text, writes from right to left, forges a line. */
export const CONTROL_TEXT = 'a\u001b]0;owned\u0007\u001b[2J\u009b8m\u202egnp.\u2028b\u0000';
/** Any character that does. */
export const RAW = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2028\u2029]/u;

/** It has been escaped. */
export function expectPlain(text: string): void {
  expect(text).toContain('u202e');
  expect(text).not.toMatch(RAW);
}
