# Node runs the TypeScript sources as they are, so the image holds sources and production dependencies, no build output.
FROM node:26-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# isolated-vm ships prebuilt binaries; no install script has to run.
RUN npm ci --omit=dev --ignore-scripts && npm cache clean --force

FROM node:26-bookworm-slim
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/.compile-cache
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json ./
COPY src ./src
COPY config ./config
# Compiled code belongs to a user and to V8's flags: filled as the user, and by the program, that will use it.
RUN install --directory --owner=65532 --group=65532 "$NODE_COMPILE_CACHE"
USER 65532:65532
RUN node src/main.ts run --help > /dev/null && node src/main.ts eval '"the sandbox works"' && node src/main.ts version
STOPSIGNAL SIGTERM
# 8080: health and metrics of `run`; 8443: the key and token API.
EXPOSE 8080 8443
# Of `run`. A container that only serves the key and token API (`api`) answers /readyz on its own port, with TLS: --no-healthcheck there.
HEALTHCHECK --interval=15s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "src/main.ts"]
CMD ["run", "--config", "/etc/endpoint-syncer/config.yaml"]
