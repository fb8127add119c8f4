/** Users of the host cluster, without the groups and extras that only this program may set. */

import type { UserInfo } from '../../../apiserver/request/user.ts';

/** Extra that marks a user of the host cluster. */
const DELEGATED = 'platform.sh/delegated';
/** Prefixes of groups and extras that only this program sets. */
const OWN_GROUPS = 'platform:';
const OWN_EXTRAS = 'platform.sh/';

/** The host authorizes these users; a user of this API with the same name is another user. */
export function isDelegated({ extra }: UserInfo): boolean {
  return extra[DELEGATED] !== undefined;
}

/**
 * The user as this API sees it, without groups that have a meaning here and that the host could assign. Undefined: the host authenticated the
 * user by one of our tokens, which is no credential for this API.
 */
export function delegatedUser({ name, uid, groups, extra }: UserInfo): UserInfo | undefined {
  if (name === '' || Object.keys(extra).some((key) => key.startsWith(OWN_EXTRAS))) return undefined;
  return {
    name,
    uid,
    groups: groups.filter((group) => !group.startsWith(OWN_GROUPS)),
    extra: { ...extra, [DELEGATED]: ['host'] },
  };
}

/** The user as the host sees it. */
export function hostUser({ extra, ...user }: UserInfo): UserInfo {
  const { [DELEGATED]: _mark, ...own } = extra;
  return { ...user, extra: own };
}
