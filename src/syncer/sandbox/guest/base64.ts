/** `atob` and `btoa` as in browsers. Runs inside the isolate: only type imports. */

export interface Base64 {
  readonly atob: (text: unknown) => string;
  readonly btoa: (text: unknown) => string;
}

export function createBase64(): Base64 {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const values = new Map(Array.from(digits, (digit, i) => [digit, i]));
  const { fromCharCode } = String;

  const btoa = (text: unknown): string => {
    const input = `${text as string}`;
    let output = '';
    for (let i = 0; i < input.length; i += 3) {
      const [a, b, c] = [input.charCodeAt(i), input.charCodeAt(i + 1), input.charCodeAt(i + 2)];
      if (a > 255 || b > 255 || c > 255) throw new RangeError('btoa takes characters up to U+00FF only');
      const bits = (a << 16) | ((b || 0) << 8) | (c || 0);
      output += digits.charAt(bits >> 18) + digits.charAt((bits >> 12) & 63);
      output += i + 1 < input.length ? digits.charAt((bits >> 6) & 63) : '=';
      output += i + 2 < input.length ? digits.charAt(bits & 63) : '=';
    }
    return output;
  };

  const atob = (text: unknown): string => {
    let input = `${text as string}`.replace(/[\t\n\f\r ]/g, '');
    if (input.length % 4 === 0) input = input.replace(/={1,2}$/, '');
    if (input.length % 4 === 1) throw new RangeError('atob was given text that is not base64');
    let [output, bits, count] = ['', 0, 0];
    for (let i = 0; i < input.length; i++) {
      const digit = values.get(input.charAt(i));
      if (digit === undefined) throw new RangeError('atob was given text that is not base64');
      bits = ((bits << 6) | digit) & 0xffffff;
      count += 6;
      if (count >= 8) {
        count -= 8;
        output += fromCharCode((bits >> count) & 255);
      }
    }
    return output;
  };
  return { atob, btoa };
}
