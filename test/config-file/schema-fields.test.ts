/** The texts that a field of each type accepts, and what they are read into. */

import { describe, expect, test } from 'vitest';
import { problemsIn, validConfig, withSyncer } from '../cli/config/setup.ts';

describe('a text that the type of the field does not accept', () => {
  test.each([
    [
      'host: {namespace: a.b}',
      expect.stringMatching(/3:21 endpointSyncer.host.namespace must be a DNS label .* found "a.b"/u),
    ],
    [
      'http: {bindAddress: "8080"}',
      '3:23 endpointSyncer.http.bindAddress must be HOST:PORT such as 127.0.0.1:8080, [::1]:8080 or :8080, found "8080"',
    ],
    [
      'sandbox: {batchTimeout: 15}',
      '3:27 endpointSyncer.sandbox.batchTimeout must be a duration such as 100ms, 15s or 1m30s, found 15',
    ],
    [
      'sandbox: {expressionTimeout: 0s}',
      '3:32 endpointSyncer.sandbox.expressionTimeout must be between 1ms and 1m, found "0s"',
    ],
    [
      'sandbox: {memory: 1Mi}',
      '3:21 endpointSyncer.sandbox.memory must be between 16Mi and 16Gi, found "1Mi"',
    ],
    [
      'sandbox: {memory: -5}',
      '3:21 endpointSyncer.sandbox.memory must be a size such as 64Mi or 1G, found -5',
    ],
    [
      'virtual: {secret: A_b}',
      expect.stringMatching(/3:21 endpointSyncer.virtual.secret must be a Kubernetes name/u),
    ],
  ])('%s', (lines, problem) => {
    expect(problemsIn(withSyncer(lines))).toEqual([problem]);
  });

  test('values are read into milliseconds and bytes', () => {
    const config = validConfig(
      withSyncer('sandbox: {expressionTimeout: 1.5s, batchTimeout: 1m, memory: 33554432, memoBytes: 0}'),
    );
    expect(config.sandbox).toEqual({
      expressionTimeout: 1_500,
      batchTimeout: 60_000,
      memory: 33_554_432,
      memoBytes: 0,
      localEvaluation: true,
    });
  });
});
