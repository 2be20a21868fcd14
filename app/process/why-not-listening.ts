/** Says why a server cannot listen, and which setting to change; undefined if the error has another reason. */
export function whyNotListening(
  error: unknown,
  { host, port }: { readonly host: string; readonly port: number },
  server: 'RECEIVER' | 'CONSOLE' | 'METRICS',
): string | undefined {
  const { code } = error as { code?: unknown };
  if (code === 'EADDRINUSE') return `port ${port} of ${host} is taken: set ${server}_PORT to a free port`;
  if (code === 'EADDRNOTAVAIL') return `${host} is not an address of this machine: correct ${server}_HOST`;
  return undefined;
}
