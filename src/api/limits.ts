/** What one server takes from its clients before it refuses. Every bound on untrusted input that is not a rule of a kind is here. */

/** More than any object has; what a Kubernetes server takes. */
export const BODY_BYTES_MAX = 3 * 1024 * 1024;
/** Bodies that are read at the same time, over all connections. */
export const BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** YAML is read some hundred times slower than JSON, so less of it is taken. */
export const YAML_BYTES_MAX = 512 * 1024;
/** Header lines and request line together; a token has at most half of it. */
export const HEADER_BYTES_MAX = 16 * 1024;
export const HEADERS_MAX = 100;
export const URL_BYTES_MAX = 8 * 1024;

/** Connections beyond these are closed before a byte is read. */
export const CONNECTIONS_MAX = 10_000;
export const REQUESTS_IN_FLIGHT_MAX = 1000;
/** Answers to reads that one user has left unread, all together; the first may be larger. */
export const ANSWERS_UNREAD_PER_USER_BYTES_MAX = 128 * 1024 * 1024;
/** Smaller ones are bounded by the requests in flight. */
export const ANSWER_COUNTED_BYTES = 64 * 1024;
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
  readonly answerMs: number;
  /** Between two requests on one connection. */
  readonly keepAliveMs: number;
  /** How often the first two are looked at. */
  readonly checkMs: number;
}

export const CLIENT_TIMEOUTS: ClientTimeouts = {
  headersMs: 10_000,
  requestMs: 60_000,
  answerMs: 60_000,
  // Longer than the client's idle time, so that it is the client who closes.
  keepAliveMs: 75_000,
  checkMs: 2000,
};

/** Requirements of a label selector. */
export const SELECTOR_REQUIREMENTS_MAX = 200;
/** Bytes of `Warning` headers in one answer, as a Kubernetes server cuts them. */
export const WARNING_BYTES_MAX = 4096;
/** Unknown and duplicate fields that one answer names. */
export const FIELD_PROBLEMS_MAX = 100;
/** Operations of one JSON Patch: more than any client sends; what a Kubernetes server takes. */
export const PATCH_OPERATIONS_MAX = 10_000;
/** What the `copy` operations of one JSON Patch may add up to: each could double the object. */
export const PATCH_COPY_BYTES_MAX = 3 * 1024 * 1024;
/** JSON and YAML nest no deeper: everything after the parser may walk a value by recursion. */
export const DEPTH_MAX = 200;
export const YAML_ALIASES_MAX = 100;
/** Fields of one protobuf message, and bytes of one body: empty messages take two bytes and a hundred times that to read. */
export const PROTOBUF_FIELDS_MAX = 20_000;
