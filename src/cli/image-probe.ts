/** The image's health check: requests /healthz of the daemon in the same container. The image has no shell and no curl. */

const PORT = process.env['ENDPOINT_SYNCER_HEALTH_PORT'] ?? '8080';

try {
  const { ok } = await fetch(`http://127.0.0.1:${PORT}/healthz`, { signal: AbortSignal.timeout(2500) });
  process.exitCode = ok ? 0 : 1;
} catch {
  process.exitCode = 1;
}
