/** What one server takes from its clients before it refuses. Every bound on untrusted input that is not a rule of a kind is here. */

/** More than any object has; what a Kubernetes server takes. */
export const BODY_BYTES_MAX = 3 * 1024 * 1024;
/** Bodies that are read at the same time, over all connections. */
export const BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** Parsing YAML takes some hundred times as long as parsing JSON. */
export const YAML_BYTES_MAX = 512 * 1024;
/** A longer YAML text is parsed in a thread. The worst text of this length takes some 20 ms. */
export const YAML_INLINE_BYTES_MAX = 4 * 1024;
/** After this time the thread is ended and the text rejected. A plain text of {@link YAML_BYTES_MAX} takes a fifth of it. */
export const YAML_PARSE_MS_MAX = 5000;
export const YAML_THREAD_MIB_MAX = 256;
/** YAML texts that wait for the thread. */
export const YAML_WAITING_MAX = 32;
/**
 * Commas, colons and opening brackets of one JSON text: what its processing costs depends on these, not on its bytes. An Endpoints object
 * with 1000 addresses and their target references has 20 000.
 */
export const JSON_TOKENS_MAX = 40_000;
/**
 * Fields of one object that field managers own one by one: labels, annotations, data entries, items of lists that merge. A write compares
 * each of them several times. What is owned as a whole, such as the addresses of Endpoints, counts as one.
 */
export const OBJECT_FIELDS_MAX = 4000;
/** Fields in all entries of `metadata.managedFields`. */
export const MANAGED_FIELDS_MAX = 40_000;
/** Header lines and request line together; a token has at most half of it. */
export const HEADER_BYTES_MAX = 16 * 1024;
export const HEADERS_MAX = 100;
export const URL_BYTES_MAX = 8 * 1024;

/** Connections beyond these are closed before a byte is read. */
export const CONNECTIONS_MAX = 10_000;
export const REQUESTS_IN_FLIGHT_MAX = 1000;
/** Answers to reads that one user has left unread, all together; the first may be larger. */
export const UNREAD_RESPONSES_PER_USER_BYTES_MAX = 128 * 1024 * 1024;
/** Smaller ones are bounded by the requests in flight. */
export const COUNTED_RESPONSE_BYTES_MIN = 64 * 1024;
export const WATCHES_MAX = 5000;
export const WATCHES_PER_USER_MAX = 2500;
/** Unread bytes after which a client is too slow to be kept. */
export const WATCH_UNREAD_BYTES_MAX = 16 * 1024 * 1024;

/** How long a client may take; a test has no time to wait for these. */
export interface ClientTimeouts {
  /** Until the headers are there, a TLS handshake before them likewise. */
  readonly headersMs: number;
  /** Until the whole request is there. */
  readonly requestMs: number;
  /** Until the whole answer has been taken; watches have their own end. */
  readonly responseMs: number;
  /** Between two requests on one connection. */
  readonly keepAliveMs: number;
  /** How often the first two are looked at. */
  readonly checkMs: number;
}

export const CLIENT_TIMEOUTS: ClientTimeouts = {
  headersMs: 10_000,
  requestMs: 60_000,
  responseMs: 60_000,
  // Longer than the client's idle time, so that it is the client who closes.
  keepAliveMs: 75_000,
  checkMs: 2000,
};

/** Requirements of a label selector. */
export const SELECTOR_REQUIREMENTS_MAX = 200;
/** Bytes of `Warning` headers in one answer, as a Kubernetes server cuts them. */
export const WARNING_BYTES_MAX = 4096;
/** Invalid, unknown and duplicate fields that one response names. */
export const FIELD_PROBLEMS_MAX = 100;
/** Operations of one JSON Patch: more than any client sends; what a Kubernetes server takes. */
export const PATCH_OPERATIONS_MAX = 10_000;
/** What the `copy` operations of one JSON Patch may add up to: each could double the object. */
export const PATCH_COPY_BYTES_MAX = 3 * 1024 * 1024;
/** JSON and YAML nest no deeper: everything after the parser may walk a value by recursion. */
export const DEPTH_MAX = 200;
export const YAML_ALIASES_MAX = 100;
/** Values of a YAML text, those that aliases repeat included. */
export const YAML_VALUES_MAX = 200_000;
/** Fields of all the messages in one protobuf body. */
export const PROTOBUF_FIELDS_MAX = 20_000;
/** JSON in the fields of one protobuf body, such as `fieldsV1`. */
export const PROTOBUF_JSON_BYTES_MAX = 256 * 1024;
/** Steps that the operations of one JSON Patch may take together: members compared or copied, list items moved. */
export const PATCH_STEPS_MAX = 300_000;
/** Characters of a path in a JSON Patch: a key of the greatest length at every level takes less. */
export const PATCH_POINTER_MAX = 16 * 1024;
