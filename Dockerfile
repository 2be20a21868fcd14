# The build argument NODE may name a digest instead. Debian rather than Alpine: Temporal's core is
# built for glibc.
ARG NODE=node:24.21.0-trixie-slim

FROM ${NODE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
# The install scripts belong to the embedded Postgres of a checkout. Here, Postgres is another container.
RUN npm ci --ignore-scripts
COPY . .
RUN node build.ts

FROM ${NODE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Optional packages are the embedded Postgres and the compilers with which a checkout bundles its workflows.
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force
# What no program loads is half of the packages: types, maps, sources of Rust, builds for browsers, and styles. Licences stay.
# Temporal's core is included for every platform, with some 30 MB for each, and only this platform's is kept. Temporal's
# worker loads webpack when it starts, but only a checkout bundles workflows, and needs what webpack then loads.
RUN cd node_modules \
  && find . -type f ! -iname '*licen[cs]e*' \
    \( -name '*.ts' -o -name '*.mts' -o -name '*.cts' -o -name '*.map' -o -name '*.md' -o -name '*.flow' \) -delete \
  && find @picocss/pico -type f ! -path '*/css/pico.min.css' ! -name package.json ! -iname '*licen[cs]e*' -delete \
  && find @temporalio/core-bridge/releases -mindepth 1 -maxdepth 1 ! -name "$(uname -m)-unknown-linux-gnu" -exec rm -r {} + \
  && rm -rf @temporalio/core-bridge/sdk-core echarts/dist echarts/i18n rxjs/dist/esm5 rxjs/dist/bundles rxjs/src \
    @types caniuse-lite browserslist electron-to-chromium node-releases terser \
  && find . -type d -empty -delete

FROM ${NODE}
ENV NODE_ENV=production METERSYNC_DIR=/var/lib/metersync RECEIVER_HOST=0.0.0.0 METRICS_HOST=0.0.0.0
RUN mkdir /var/lib/metersync && chown node:node /var/lib/metersync
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /build/dist dist
USER node
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=20s --start-period=30s CMD ["node", "/app/dist/cli/main.js", "healthcheck"]
# Runs Node without a shell, so that it receives SIGTERM and drains.
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["start"]
