/** The text of a module with the bug of a mutant in it. */

import type { Mutant } from './mutants.ts';

/** Throws where the snippet is not in the text exactly once: the module has changed, and the mutant must follow. */
export function mutated({ name, file, snippet, replacement }: Mutant, text: string): string {
  const parts = text.split(snippet);
  if (parts.length !== 2)
    throw new Error(`mutant "${name}": src/${file} has its snippet ${parts.length - 1} times: ${snippet}`);
  return parts.join(replacement);
}
