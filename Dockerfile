# The image holds Node.js, the bundled program and isolated-vm; no shell and no package manager. `scripts/image/check.sh` runs the
# same steps without a container engine.
FROM node:26.10.0-bookworm-slim@sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2 AS build
WORKDIR /src
COPY package.json package-lock.json ./
# No script has to run: isolated-vm ships prebuilt binaries.
RUN npm ci --ignore-scripts
COPY . .
RUN scripts/image/app.sh /app
ENV NODE_COMPILE_CACHE=/app/compiled
# Compiled code belongs to the user and the program that will use it. The demo calls the functions that a start of the daemon calls.
RUN setpriv --reuid=65532 --regid=65532 --clear-groups node /app/dist/main.js demo --once --dir /tmp/demo > /dev/null \
  && setpriv --reuid=65532 --regid=65532 --clear-groups node /app/dist/main.js eval '"the sandbox works"'

FROM gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /app /app
# One malloc arena: with one for each thread of V8, a sidecar is 10 MiB larger. Fixed thresholds: glibc raises them with the largest buffer that was
# freed, and then keeps 3 MiB that the start needed.
ENV NODE_ENV=production NODE_COMPILE_CACHE=/app/compiled \
  MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=65536
USER 65532:65532
STOPSIGNAL SIGTERM
# 8080: health and metrics of `run`; 9443: the key and token API, as the Helm chart configures it.
EXPOSE 8080 9443
HEALTHCHECK --interval=15s --timeout=3s --start-period=30s \
  CMD ["/usr/local/bin/node", "/app/dist/image-probe.js"]
ENTRYPOINT ["/usr/local/bin/node", "/app/dist/main.js"]
CMD ["run", "--config", "/etc/endpoint-syncer/config.yaml"]
