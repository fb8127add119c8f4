/** The address of an API server in a kubeconfig, as client-go reads it (`rest.DefaultServerURL`). */

/** Without a scheme, it is reached through plain HTTP. Undefined: it is no URL of an API server, or has a user name, which would be in messages. */
export function serverUrl(written: string): URL | undefined {
  const isWhole = /^[a-z][a-z\d+.-]*:\/\/[^/?#]/iu.test(written);
  const url = URL.parse(isWhole ? written : `http://${written}`);
  // `URL` takes blanks and backslashes, and paths for hosts.
  if (url === null || /[\s\\\p{Cc}]/u.test(written) || !/^https?:$/u.test(url.protocol)) return undefined;
  if (!isWhole && (/^\/|:\/\//u.test(written) || url.pathname !== '/')) return undefined;
  if (url.username !== '' || url.password !== '') return undefined;
  url.search = '';
  url.hash = '';
  return url;
}
