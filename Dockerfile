# syntax=docker/dockerfile:1

# Debian rather than Alpine: Temporal's core is built for glibc.
FROM node:24.21.0-trixie-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
# The install scripts belong to the embedded Postgres of a checkout. Here, Postgres is another container.
RUN npm ci --ignore-scripts
COPY . .
RUN node build.ts

FROM node:24.21.0-trixie-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Optional packages are the embedded Postgres and the compilers with which a checkout bundles its workflows.
RUN npm ci --omit=dev --omit=optional --ignore-scripts && npm cache clean --force
# Temporal's core is included for every platform, with some 30 MB for each. Only this platform's is kept.
RUN cd node_modules/@temporalio/core-bridge/releases && find . -mindepth 1 -maxdepth 1 ! -name "$(uname -m)-unknown-linux-gnu" -exec rm -r {} +

FROM node:24.21.0-trixie-slim
ENV NODE_ENV=production METERSYNC_DIR=/var/lib/metersync RECEIVER_HOST=0.0.0.0 METRICS_HOST=0.0.0.0
RUN mkdir /var/lib/metersync && chown node:node /var/lib/metersync
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /build/dist dist
USER node
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["node", "/app/dist/cli/main.js", "healthcheck"]
# Runs Node without a shell, so that it receives SIGTERM and drains.
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["start"]
