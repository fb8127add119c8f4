/** Limits on what clients may send and hold. Every limit on untrusted input that is not a rule of a kind or of one field is here. */

/** The limit of a kube-apiserver. */
export const BODY_BYTES_MAX = 3 * 1024 * 1024;
/** Bodies that are read at the same time, over all connections, and the total of their bytes. One user gets a quarter: see `SharedLimit`. */
export const BODIES_MAX = 1000;
export const BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** A slower body is given up: after {@link ClientTimeouts.bodyMs}, this much must have arrived for each further second. */
export const BODY_BYTES_PER_SECOND_MIN = 64 * 1024;
/** The rest of a rejected body is read up to this size, so that the client can read the response. */
export const DISCARDED_BODY_BYTES_MAX = 64 * 1024 * 1024;
/** Parsing YAML takes about a hundred times as long as parsing JSON. */
export const YAML_BYTES_MAX = 32 * 1024;
/** Tokens of one YAML text. A text of {@link YAML_BYTES_MAX} with a short word in each line has as many; the worst text takes about 70 ms. */
export const YAML_TOKENS_MAX = 16_000;
/** Longer responses in YAML are in flow style. Block style takes 0.3 µs per character. */
export const YAML_BLOCK_CHARACTERS_MAX = 128 * 1024;
/**
 * Commas, colons and opening brackets of one JSON text: the cost of processing depends on their number, not on the bytes. An Endpoints
 * object with 1000 addresses and their target references has 20 000.
 */
export const JSON_TOKENS_MAX = 40_000;
/**
 * Fields of one object that field managers own individually: labels, annotations, data entries, items of lists that merge. A write compares
 * each of them several times. An atomic field, such as the addresses of Endpoints, counts as one.
 */
export const OBJECT_FIELDS_MAX = 4000;
export const MANAGED_FIELDS_MAX = 40_000;
/** Header lines and request line together; a token takes at most half of it. */
export const HEADER_BYTES_MAX = 16 * 1024;
export const HEADERS_MAX = 100;
export const URL_BYTES_MAX = 8 * 1024;

/** Further connections are closed before a byte is read. */
export const CONNECTIONS_MAX = 10_000;
/** Requests whose body has been read. One user gets a quarter: see `SharedLimit`. */
export const REQUESTS_IN_FLIGHT_MAX = 1000;
/** Total of the responses to reads that one user has not read yet; a single response may be larger. */
export const UNREAD_RESPONSES_PER_USER_BYTES_MAX = 128 * 1024 * 1024;
/** Smaller responses are limited by the number of requests in flight. */
export const COUNTED_RESPONSE_BYTES_MIN = 64 * 1024;
export const WATCHES_MAX = 5000;
export const WATCHES_PER_USER_MAX = 2500;
/** Above this many unread bytes, the connection of a watch is closed. */
export const WATCH_UNREAD_BYTES_MAX = 16 * 1024 * 1024;

export interface ClientTimeouts {
  /** Until the headers have arrived; the TLS handshake before them has the same deadline. */
  readonly headersMs: number;
  /** Until the complete request has arrived. */
  readonly requestMs: number;
  /** Until the body of an authenticated request has arrived, and a second more for each {@link BODY_BYTES_PER_SECOND_MIN}. */
  readonly bodyMs: number;
  /** Until the client has read the complete response; does not apply to watches. */
  readonly responseMs: number;
  readonly keepAliveMs: number;
  /** How often the first two are checked. */
  readonly checkMs: number;
}

export const CLIENT_TIMEOUTS: ClientTimeouts = {
  headersMs: 10_000,
  requestMs: 60_000,
  bodyMs: 10_000,
  responseMs: 60_000,
  // Longer than the idle time of clients, so that the client closes first.
  keepAliveMs: 75_000,
  checkMs: 2000,
};

/** 68 years. The deletionTimestamp of an unlimited grace period would have a year that clients cannot parse. */
export const GRACE_SECONDS_MAX = 2 ** 31 - 1;
/** Bytes of `Warning` headers in one response, as in a kube-apiserver. */
export const WARNING_BYTES_MAX = 4096;
/** Invalid, unknown and duplicate fields that one response names. */
export const FIELD_PROBLEMS_MAX = 100;
/** Operations of one JSON Patch: the limit of a kube-apiserver. */
export const PATCH_OPERATIONS_MAX = 10_000;
/** Total of what the `copy` operations of one JSON Patch add: each could double the object. */
export const PATCH_COPY_BYTES_MAX = 3 * 1024 * 1024;
/** Nesting of JSON and YAML: everything after the parser may walk a value recursively. */
export const DEPTH_MAX = 200;
/** Values of a YAML text, including those that aliases repeat. */
export const YAML_VALUES_MAX = 200_000;
export const PROTOBUF_FIELDS_MAX = 20_000;
/** JSON in the fields of one protobuf body, such as `fieldsV1`. */
export const PROTOBUF_JSON_BYTES_MAX = 256 * 1024;
/** List items that all operations of one JSON Patch may move together. */
export const PATCH_ITEMS_MOVED_MAX = 9_600_000;
/** Characters of a path in a JSON Patch: keys of the maximum length at every level need less. */
export const PATCH_POINTER_MAX = 16 * 1024;
