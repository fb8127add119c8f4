/** The API group of keys and tokens. */

export const MANAGEMENT_GROUP = 'management.platform.sh';
export const MANAGEMENT_VERSION = 'v1';
/** `apiVersion` of its objects. */
export const MANAGEMENT_API_VERSION = `${MANAGEMENT_GROUP}/${MANAGEMENT_VERSION}`;
