import type { DataIssue } from '../db/read/issues.ts';

/**
 * Names an issue's subject as a person would; undefined if it is the company. A closed issue has only an id,
 * because names may move on.
 */
export function subjectOf({ entityType, entityId, names }: DataIssue): string | undefined {
  if (entityType === 'company') return undefined;
  const { site, provider, meter, account, invoice } = names ?? {};
  const known = [
    site,
    entityType === 'connection' ? provider : undefined,
    meter && `meter ${meter}`,
    invoice ? `invoice ${invoice}` : account && `account ${account}`,
  ].filter((name) => name);
  return known.length === 0 ? `${entityType} ${entityId}` : known.join(', ');
}
