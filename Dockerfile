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
RUN node -e "import('./src/cli/run.ts')" && node src/main.ts version
USER 65532:65532
STOPSIGNAL SIGTERM
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "src/main.ts"]
CMD ["run", "--config", "/etc/endpoint-syncer/config.yaml"]
