/** The response of a handler, before it becomes HTTP. */

import { stringify } from 'yaml';
import type { StatusError } from '../../kube/status-error.ts';
import type { JsonValue } from '../../base/json.ts';
import { WARNING_BYTES_MAX, YAML_BLOCK_CHARACTERS_MAX } from '../limits.ts';
import type { ResponseForm } from './negotiate.ts';

export interface ApiResponse {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
}

export function jsonResponse(code: number, body: JsonValue | string, form?: ResponseForm): ApiResponse {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  if (form?.format === 'yaml') {
    return { code, headers: { 'content-type': 'application/yaml' }, body: yamlText(text) };
  }
  return { code, headers: { 'content-type': 'application/json' }, body: text };
}

/** Long texts stay JSON, which is YAML in flow style: conversion to block style would block the event loop. */
function yamlText(json: string): string {
  if (json.length > YAML_BLOCK_CHARACTERS_MAX) return json;
  return stringify(JSON.parse(json), { sortMapEntries: true, version: '1.1' });
}

export function textResponse(code: number, body: string): ApiResponse {
  return { code, headers: { 'content-type': 'text/plain; charset=utf-8' }, body };
}

export function statusResponse(error: StatusError): ApiResponse {
  const response = jsonResponse(error.code, JSON.stringify(error.status));
  if (error.retryAfterMs === undefined) return response;
  const retryAfter = String(Math.ceil(error.retryAfterMs / 1000));
  return { ...response, headers: { ...response.headers, 'retry-after': retryAfter } };
}

/** `Warning` headers, which kubectl prints. */
export function withWarnings(response: ApiResponse, warnings: readonly string[]): ApiResponse {
  if (warnings.length === 0) return response;
  const lines: string[] = [];
  let bytes = 0;
  for (const text of warnings) {
    const line = `299 - ${JSON.stringify(printable(text))}`;
    bytes += line.length;
    if (bytes > WARNING_BYTES_MAX) break;
    lines.push(line);
  }
  return { ...response, headers: { ...response.headers, warning: lines } };
}

/** Headers hold printable ASCII only. */
function printable(text: string): string {
  return text.slice(0, 1000).replaceAll(/[^\x20-\x7e]/g, '?');
}
