import type { DataIssue } from '../db/read/issues.ts';

/**
 * Names what an issue is about as a person would: site, meter, account, invoice or provider. A closed issue
 * only has its id, because its account or meter may belong to another record now.
 */
export function subjectOf({ entityType, entityId, names }: DataIssue): string {
  const { site, provider, meter, account, invoice } = names ?? {};
  const known = [
    site,
    entityType === 'connection' ? provider : undefined,
    meter && `meter ${meter}`,
    invoice ? `invoice ${invoice}` : account && `account ${account}`,
  ].filter((name) => name);
  return known.length === 0 ? `${entityType} ${entityId}` : known.join(', ');
}
