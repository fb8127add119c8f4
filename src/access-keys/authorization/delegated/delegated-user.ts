/** Users of the host cluster: what of them may be believed here. */

import type { UserInfo } from '../../../apiserver/request/user.ts';

/** Set by this program on users whom the host cluster has vouched for. */
const DELEGATED = 'platform.sh/delegated';
/** Groups and extras that only this program gives. */
const OWN_GROUPS = 'platform:';
const OWN_EXTRAS = 'platform.sh/';

/** Their rights are the host's to decide, never those of a user of this API who happens to have the same name. */
export function isDelegated({ extra }: UserInfo): boolean {
  return extra[DELEGATED] !== undefined;
}

/**
 * The user as it is known here: without groups that mean something here and that the host could give to anybody. Undefined: the host got to
 * know this user by a token of ours, which is no credential for this API.
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

/** The user as the host knows it. */
export function hostUser({ extra, ...user }: UserInfo): UserInfo {
  const { [DELEGATED]: _mark, ...own } = extra;
  return { ...user, extra: own };
}
