import type { Executor } from '../db/connection/connect.ts';
import { type DataIssue, type IssueNames, namesOfIssues } from '../db/read/issues.ts';

/** Names what each issue is about as a person would: site, meter, account, invoice or provider. */
export async function subjectsOf(
  db: Executor,
  issues: readonly DataIssue[],
): Promise<ReadonlyMap<number, string>> {
  const names = await namesOfIssues(
    db,
    issues.map(({ id }) => id),
  );
  return new Map(issues.map((issue) => [issue.id, subjectOf(issue, names.get(issue.id))]));
}

/** A closed issue only has its id, because its account or meter may belong to another record now. */
function subjectOf({ entityType, entityId }: DataIssue, names?: IssueNames): string {
  const { site, provider, meter, account, invoice } = names ?? {};
  const known = [
    site,
    entityType === 'connection' ? provider : undefined,
    meter && `meter ${meter}`,
    invoice ? `invoice ${invoice}` : account && `account ${account}`,
  ].filter((name) => name);
  return known.length === 0 ? `${entityType} ${entityId}` : known.join(', ');
}
