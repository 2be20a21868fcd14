/** The services of Temporal. Each is a separate process, and there are two history services. */
export const serviceNames = ['frontend', 'history-1', 'history-2', 'matching', 'worker'] as const;
export type ServiceName = (typeof serviceNames)[number] | 'internal-frontend';

export interface ServicePorts {
  readonly grpc: number;
  /** The port on which services announce themselves to one another. */
  readonly membership: number;
}

export interface Security {
  /** Paths of the frontend's certificate and key, and of the CA if clients need a certificate. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string; readonly clientCaFile?: string };
  /** The URL of the public keys of API keys, as JWKS. Without it clients need no key. */
  readonly jwksUrl?: string;
}

/** The kind of a service, as Temporal names it. */
export const kindOf = (service: ServiceName): string => service.replace(/-\d$/, '');

/** The number of history shards, which can never be changed. Both history services share them. */
const historyShards = 16;

/** Makes the configuration of one process, modelled on Temporal's config/development-postgres12.yaml. */
export function configurationOf(
  service: ServiceName,
  ports: Readonly<Partial<Record<ServiceName, ServicePorts>>>,
  databases: { readonly main: string; readonly visibility: string },
  { tls, jwksUrl }: Security,
): object {
  // An entry of another kind only says that there is such a service. Each service announces its own port.
  const others = Object.entries(ports).map(([name, port]) => [kindOf(name as ServiceName), rpcOf(port)]);
  const own = ports[service];
  if (own === undefined) throw new Error(`${service} has no ports`);
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      defaultStore: 'main',
      visibilityStore: 'visibility',
      numHistoryShards: historyShards,
      datastores: { main: storeOf(databases.main, 20), visibility: storeOf(databases.visibility, 5) },
    },
    global: {
      membership: { maxJoinDuration: '30s', broadcastAddress: '127.0.0.1' },
      ...(tls === undefined ? {} : { tls: { frontend: frontendTls(tls) } }),
      ...(jwksUrl === undefined ? {} : { authorization: authorizationBy(jwksUrl) }),
    },
    services: { ...Object.fromEntries(others), [kindOf(service)]: rpcOf(own) },
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: {
          enabled: true,
          initialFailoverVersion: 1,
          rpcName: 'frontend',
          rpcAddress: `127.0.0.1:${ports.frontend?.grpc}`,
        },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
  };
}

const rpcOf = ({ grpc, membership }: ServicePorts) => ({
  rpc: { grpcPort: grpc, membershipPort: membership, bindOnLocalHost: true },
});

function storeOf(databaseUrl: string, maxConns: number): object {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  return {
    sql: {
      pluginName: 'postgres12',
      databaseName: pathname.slice(1),
      connectAddr: `${hostname}:${port}`,
      connectProtocol: 'tcp',
      user: decodeURIComponent(username),
      password: decodeURIComponent(password),
      maxConns,
      maxIdleConns: maxConns,
      maxConnLifetime: '1h',
    },
  };
}

const frontendTls = ({ certFile, keyFile, clientCaFile }: NonNullable<Security['tls']>) => ({
  server: {
    certFile,
    keyFile,
    ...(clientCaFile === undefined ? {} : { requireClientAuth: true, clientCaFiles: [clientCaFile] }),
  },
});

const authorizationBy = (jwksUrl: string) => ({
  jwtKeyProvider: { keySourceURIs: [jwksUrl] },
  authorizer: 'default',
  claimMapper: 'default',
});
