/** Patterns of text in which `*` stands for any text. */

export function textPattern(pattern: string): (text: string) => boolean {
  const literals = pattern.split('*').map((literal) => literal.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&'));
  const expression = new RegExp(`^${literals.join('.*')}$`, 's');
  return (text) => expression.test(text);
}
