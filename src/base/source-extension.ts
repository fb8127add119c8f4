/** Files that this program loads by path: TypeScript in a checkout, JavaScript in the built package. */

/** The extension of the file with this URL, which is that of the files beside it. */
export function sourceExtension(moduleUrl: string): 'ts' | 'js' {
  return moduleUrl.endsWith('.ts') ? 'ts' : 'js';
}
