/** SelfSubjectRulesReview: authorizes every verb of every resource, so that the list agrees with the decisions about requests. */

import { MANAGEMENT_GROUP } from '../../api-group.ts';
import type { AccessRequest } from '../../../apiserver/request/authorizer.ts';
import { ALL_VERBS } from '../../../apiserver/objects/resource-definition.ts';
import type { UserInfo } from '../../../apiserver/request/user.ts';
import type { JsonObject } from '../../../base/json.ts';
import type { ManagementAuthorizer } from '../authorizer.ts';
import {
  AUTHENTICATION_GROUP,
  AUTHORIZATION_GROUP,
  DISCOVERY_URLS,
  EVENTS,
  EVENTS_GROUP,
  KEYS,
  ROTATE,
  SELF_REVIEWS,
  TOKENS,
} from '../roles.ts';
import { ANY } from '../scope/scope-names.ts';

const CREATE: readonly string[] = ['create'];

interface Candidate {
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly verbs: readonly string[];
}

const RESOURCES: readonly Candidate[] = [
  { group: MANAGEMENT_GROUP, resource: KEYS, subresource: '', verbs: ALL_VERBS },
  { group: MANAGEMENT_GROUP, resource: KEYS, subresource: 'status', verbs: ['get', 'patch', 'update'] },
  { group: MANAGEMENT_GROUP, resource: KEYS, subresource: ROTATE, verbs: CREATE },
  { group: EVENTS_GROUP, resource: EVENTS, subresource: '', verbs: ['get', 'list', 'watch'] },
  { group: MANAGEMENT_GROUP, resource: TOKENS, subresource: '', verbs: CREATE },
  { group: AUTHENTICATION_GROUP, resource: 'tokenreviews', subresource: '', verbs: CREATE },
  { group: AUTHORIZATION_GROUP, resource: 'subjectaccessreviews', subresource: '', verbs: CREATE },
  ...SELF_REVIEWS.map(([group, resource]) => ({ group, resource, subresource: '', verbs: CREATE })),
];

const NOTHING: AccessRequest = {
  verb: '',
  group: '',
  version: 'v1',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
  path: '',
  prefix: '',
};

/** `SubjectRulesReviewStatus`. Rules for single names are not listed, so a scope with names may allow more. */
export async function rulesOf(authorizer: ManagementAuthorizer, user: UserInfo): Promise<JsonObject> {
  const may = async (request: Partial<AccessRequest>): Promise<boolean> =>
    (await authorizer.decide(user, { ...NOTHING, ...request })).isAllowed;
  const resourceRules: JsonObject[] = [];
  const isEverything = await may({ verb: ANY, group: ANY, resource: ANY });
  if (isEverything) resourceRules.push({ verbs: [ANY], apiGroups: [ANY], resources: [ANY] });
  for (const { group, resource, subresource, verbs } of isEverything ? [] : RESOURCES) {
    const allowed: string[] = [];
    for (const verb of verbs) if (await may({ verb, group, resource, subresource })) allowed.push(verb);
    const name = subresource === '' ? resource : `${resource}/${subresource}`;
    if (allowed.length > 0) resourceRules.push({ verbs: allowed, apiGroups: [group], resources: [name] });
  }
  const paths: string[] = [];
  for (const path of DISCOVERY_URLS) if (await may({ verb: 'get', path })) paths.push(path);
  return {
    resourceRules,
    nonResourceRules: paths.length === 0 ? [] : [{ verbs: ['get'], nonResourceURLs: paths }],
    incomplete: hasNames(user),
  };
}

function hasNames({ extra }: UserInfo): boolean {
  return Object.values(extra).some((texts) => texts.some((text) => text.includes('"resourceNames"')));
}
