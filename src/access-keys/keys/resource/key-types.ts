/** The fields of an OwnedAccessKey. Notation: `api/schema/notation.ts`; the scope's are in `scope-types.ts`. */

import type { Descriptions } from '../../../apiserver/schema/notation.ts';
import { ROTATION_DESCRIPTIONS, ROTATION_TYPES } from './key-rotation.ts';

/**
 * Pointers are what has to be told apart from nothing: a ttl of 0, a type that is given but empty, a scope without entries, a secret that
 * is taken away, an object that holds nothing but secrets.
 */
export const KEY_TYPES = `
management.OwnedAccessKey = metadata! meta.ObjectMeta; spec! management.OwnedAccessKeySpec; status! management.OwnedAccessKeyStatus
management.OwnedAccessKeySpec = displayName string; description string; user string; team string; subject string; groups []string; key string; disabled bool; ttl *int64; ttlAfterLastActivity bool; scope *management.AccessKeyScope; type *string; identity *management.AccessKeyIdentity; identityRefresh *time; oidcProvider *management.AccessKeyOIDCProvider; parent string; oidcLogin *management.AccessKeyOIDC
management.AccessKeyIdentity = userId string; username string; preferredUsername string; email string; emailVerified bool; extraClaims {}any; groups []string; connector string; connectorData *string; identityRefresh *time
management.AccessKeyOIDCProvider = clientId string; nonce string; redirectUri string; scopes string
management.AccessKeyOIDC = idToken *string; accessToken *string; refreshToken *string; lastRefresh *time
management.OwnedAccessKeyStatus = lastActivity *time
${ROTATION_TYPES.trim()}
`;

const WRITE_ONLY =
  'Write-only: no answer ever holds it, a write without it keeps it, an empty value removes it.';

export const KEY_DESCRIPTIONS: Descriptions = {
  ...ROTATION_DESCRIPTIONS,
  'management.OwnedAccessKey':
    'A credential for programs, such as a CI job: its key is used as a bearer token against the API, and it speaks for one user, team or subject.',
  'management.OwnedAccessKey.metadata': 'Name, labels, annotations and what the server keeps.',
  'management.OwnedAccessKey.spec': 'What the key is for and what it may do.',
  'management.OwnedAccessKey.status': 'What the server observed.',
  'management.OwnedAccessKeySpec':
    'A new key needs displayName, type, ttl and exactly one of user, team and subject.',
  'management.OwnedAccessKeySpec.displayName': 'The name that people see. Needed on create.',
  'management.OwnedAccessKeySpec.description': 'Free text: what the key is used for.',
  'management.OwnedAccessKeySpec.user':
    'The user that the key speaks for. Exactly one of user, team and subject is set; it cannot be changed.',
  'management.OwnedAccessKeySpec.team':
    'The team that the key speaks for. Exactly one of user, team and subject is set; it cannot be changed.',
  'management.OwnedAccessKeySpec.subject':
    'Who the key speaks for, where that is neither a user nor a team. Exactly one of user, team and subject is set; it cannot be changed.',
  'management.OwnedAccessKeySpec.groups':
    'Groups that a caller with this key has beside those of its subject.',
  'management.OwnedAccessKeySpec.key':
    'The bearer token itself. The server makes it, and shows it once, in the answer to the create; it keeps only a digest. A key that the ' +
    'client sends on create is taken when it has at least 32 characters. It cannot be changed; POST to the subresource rotate for a new one.',
  'management.OwnedAccessKeySpec.disabled': 'The key stays, but is refused.',
  'management.OwnedAccessKeySpec.ttl':
    'How long the key lives, in seconds; 0 means that it never expires. Needed on create. An expired key is refused at once and then deleted.',
  'management.OwnedAccessKeySpec.ttlAfterLastActivity':
    'The ttl counts from the last use (status.lastActivity), not from the creation.',
  'management.OwnedAccessKeySpec.scope':
    'Restricts what the key may be used for. Absent: no restriction; without entries: nothing.',
  'management.OwnedAccessKeySpec.type':
    'Who manages the key: User (a person), or the platform itself: Login, Other, Reset, OIDCRefreshToken, NetworkPeer, Workspace. Needed ' +
    'on create, where empty text means User; it cannot be changed.',
  'management.OwnedAccessKeySpec.identity':
    'What a single sign-on said about the person, where the key came from one.',
  'management.OwnedAccessKeySpec.identityRefresh': 'When identity was last brought up to date.',
  'management.OwnedAccessKeySpec.oidcProvider':
    'For a refresh token: what the platform told the client as its OIDC provider.',
  'management.OwnedAccessKeySpec.parent':
    'DEPRECATED: use identity. The key whose OIDC tokens this key shares, so that a refresh of one does not end the others.',
  'management.OwnedAccessKeySpec.oidcLogin': 'DEPRECATED: use identity. Tokens of an OIDC login.',
  'management.AccessKeyIdentity': 'A person, as an identity provider describes it.',
  'management.AccessKeyIdentity.userId': 'The subject by which the provider knows the person.',
  'management.AccessKeyIdentity.username': 'The name of the account.',
  'management.AccessKeyIdentity.preferredUsername': 'The name that the person wants to be called by.',
  'management.AccessKeyIdentity.email': 'E-mail address.',
  'management.AccessKeyIdentity.emailVerified':
    'The provider has checked that the address belongs to the person.',
  'management.AccessKeyIdentity.extraClaims':
    'Further claims of the provider, as far as the configuration of the login lets them through.',
  'management.AccessKeyIdentity.groups': 'Groups of the person at the provider.',
  'management.AccessKeyIdentity.connector': 'Name of the connector that the login went through.',
  'management.AccessKeyIdentity.connectorData': `What the connector needs later, such as tokens of the provider. ${WRITE_ONLY}`,
  'management.AccessKeyIdentity.identityRefresh': 'When the identity was last brought up to date.',
  'management.AccessKeyOIDCProvider': 'What belongs to a refresh token that the platform gave out.',
  'management.AccessKeyOIDCProvider.clientId': 'The client that the token was made for.',
  'management.AccessKeyOIDCProvider.nonce': 'The nonce of the login.',
  'management.AccessKeyOIDCProvider.redirectUri': 'Where the login returned to.',
  'management.AccessKeyOIDCProvider.scopes': 'The OIDC scopes of the token, separated by spaces.',
  'management.AccessKeyOIDC': 'Tokens of an OIDC login.',
  'management.AccessKeyOIDC.idToken': `The id token. ${WRITE_ONLY}`,
  'management.AccessKeyOIDC.accessToken': `The access token. ${WRITE_ONLY}`,
  'management.AccessKeyOIDC.refreshToken': `The refresh token. ${WRITE_ONLY}`,
  'management.AccessKeyOIDC.lastRefresh': 'When the id token was last refreshed.',
  'management.OwnedAccessKeyStatus': 'Written by the server, and by administrators through the subresource.',
  'management.OwnedAccessKeyStatus.lastActivity':
    'When the key was last used; kept about once a minute. Refused requests do not count.',
};
