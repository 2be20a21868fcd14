import type { Settings } from '../../app/settings/settings.ts';
import type { AuditResource } from '../../contract/endpoints.ts';
import { formatTime, timeAgo } from '../../contract/times.ts';
import { counted, nameInWords } from '../../contract/words.ts';
import { auditInWords } from '../../db/operations.ts';
import {
  type AuditOptions,
  type AuditReport,
  audit,
  type Example,
  repair,
} from '../../operations/audit/audit.ts';
import { recorded, recordedWherePossible } from '../../operations/recorded.ts';
import { whyNotRead } from '../../operations/runs.ts';
import { asOperation } from '../command-line.ts';
import { print, printJson, UsageError } from '../output.ts';
import { createProgress, table } from '../terminal.ts';
import { withWarehouse } from '../warehouse.ts';

interface AuditCommandOptions {
  readonly company?: string;
  readonly resource?: readonly AuditResource[];
  readonly since?: string;
  readonly repair?: boolean;
  /** In milliseconds. */
  readonly settle: number;
  readonly json?: boolean;
}

/** Upper limit for any SERVICE_MAX_CONCURRENCY, because each listing holds a page and a connection. */
const listingsAtOnceMax = 16;

/** `metersync audit`: reads the service again and prints differences; `--repair` changes the rows. */
export async function auditCommand(options: AuditCommandOptions): Promise<void> {
  const listings = (settings: Settings) => Math.min(settings.service.maxConcurrency, listingsAtOnceMax);
  const need = { temporal: false, service: true, connections: listings };
  await withWarehouse(need, async ({ db, warehouse, context }) => {
    const { settings } = context;
    const { client, apiVersion } = await context.access();
    try {
      if (options.company !== undefined) {
        const reason = await whyNotRead(db, client, options.company);
        if (reason !== undefined) throw new UsageError(reason);
      }
      const configured = settings.service.companies;
      const sides = { warehouse, service: client, concurrency: listings(settings), configured };
      await compare(sides, { apiVersion, settings }, options);
    } finally {
      await client.close();
    }
  });
}

async function compare(
  sides: Pick<AuditOptions, 'warehouse' | 'service' | 'concurrency' | 'configured'>,
  { apiVersion, settings }: { readonly apiVersion: string; readonly settings: Settings },
  options: AuditCommandOptions,
): Promise<void> {
  const progress = await createProgress();
  const input: AuditOptions = {
    ...sides,
    companyId: options.company,
    resources: options.resource,
    since: options.since,
    settleMs: options.settle,
    onProgress: ({ companies, compared }) =>
      progress.show([
        `audit: ${counted(compared, 'record')} compared; ${counted(companies, 'company', 'companies')} done`,
      ]),
  };
  const scope = {
    company: options.company,
    resources: options.resource?.join(' '),
    since: options.since,
  };
  const found = options.repair
    ? await recorded(
        sides.warehouse.db,
        asOperation(settings, 'audit repair', scope),
        () => repair({ ...input, apiVersion }),
        ({ differences, runId }) => `${counted(differences, 'difference')} found; run ${runId}`,
      )
    : undefined;
  // An audit changes nothing, so a login that may only read can run it, and then leaves no entry in the log.
  const report = await recordedWherePossible(
    sides.warehouse.db,
    asOperation(settings, 'audit', scope),
    async () => (found?.differences === 0 ? found : await audit(input)),
    auditInWords,
    () => {},
  );
  progress.done();
  if (options.json) {
    printJson(found === undefined ? report : { ...report, repaired: found });
  } else {
    print(...describeAudit(report, options), ...(found === undefined ? [] : [describeRepair(found, report)]));
  }
  if (report.differences > 0) process.exitCode = 1;
}

function describeRepair(found: AuditReport & { runId: string }, after: AuditReport): string {
  if (found.differences === 0) return 'There was nothing to repair.';
  const left =
    after.differences === 0
      ? ''
      : `; ${after.differences} ${after.differences === 1 ? 'is' : 'are'} left, because the service keeps changing or for the reasons above`;
  const were = found.differences === 1 ? 'was' : 'were';
  return `${counted(found.differences, 'difference')} ${were} found and corrected${left}. Rows that the service no longer has are tombstoned; metersync deletes undo ${found.runId} restores them.`;
}

/** Describes a report in lines for people. Omits resources not compared, unless their listing is in doubt. */
export function describeAudit(
  report: AuditReport,
  { resource: only, since }: Pick<AuditCommandOptions, 'resource' | 'since'> = {},
): string[] {
  const asked = Object.entries(report.resources).filter(
    ([name, r]) => only === undefined || only.includes(name as AuditResource) || r.suspect + r.unread > 0,
  );
  const left =
    since === undefined
      ? []
      : asked.filter(([, r]) => r.compared + r.missing + r.extra + r.suspect + r.unread + r.kept === 0);
  const compared = asked.filter((of) => !left.includes(of));
  const counts = ['compared', 'missing', 'extra', 'different', 'suspect'] as const;
  const rare = (['unread', 'kept'] as const).filter((count) => compared.some(([, r]) => r[count] > 0));
  const shown = [...counts, ...rare];
  const rows = compared.map(([name, r]) => [nameInWords(name), ...shown.map((count) => r[count])]);
  const lines = rows.length === 0 ? [] : table(['audit', ...shown], rows);
  if (left.length > 0)
    lines.push(
      `resources without a change since then: ${left.map(([name]) => nameInWords(name)).join(', ')}`,
    );
  for (const example of report.examples) lines.push(...describeExample(example));
  if (report.differences > report.examples.length && report.examples.length > 0) lines.push('…');
  const unreadable = compared.reduce((sum, [, r]) => sum + r.unreadable, 0);
  if (unreadable > 0)
    lines.push(
      `${counted(unreadable, 'value')} of the service could not be read. ${unreadable === 1 ? 'It does not count as a difference, because the columns raw and unreadable have it' : 'They do not count as differences, because the columns raw and unreadable have them'} (metersync checks list --check unreadable_value)`,
    );
  lines.push(...describeKept(report.kept));
  lines.push(`${counted(report.differences, 'difference')} in ${counted(report.compared, 'record')}`);
  return lines;
}

/** Says who decided to keep rows that the service no longer has. */
function describeKept({ rows, decisions }: AuditReport['kept']): string[] {
  if (rows === 0) return [];
  const known =
    rows === 1
      ? '1 row is kept although the service no longer has it. It does not count as a difference'
      : `${counted(rows, 'row')} are kept although the service no longer has them. They do not count as differences`;
  return [
    `${known}, by decision of:`,
    ...decisions.map(
      ({ by, at, runId }) =>
        `    ${by ?? 'somebody'}, ${formatTime(at ?? '')}: metersync deletes list ${runId}`,
    ),
  ];
}

const shorten = (text: string | null) =>
  text === null ? 'nothing' : text.length > 60 ? `${text.slice(0, 60)}…` : text;

/** Describes a difference: both sides, and the events behind it; or a listing that is suspect or unread. */
function describeExample({ state, resource, id, fields = [], events, refused, reason }: Example): string[] {
  return [
    `${state}: ${nameInWords(resource)} ${id}`,
    ...(reason === undefined
      ? []
      : [`    the listing ${state === 'unread' ? 'was refused' : 'contradicts itself'}: ${reason}`]),
    ...(refused === undefined
      ? []
      : [`    Postgres refused it, and it is kept in metersync.rejected_records: ${refused}`]),
    ...fields.map(
      ({ field, service, warehouse }) =>
        `    ${field}: the service has ${shorten(service)}, the warehouse ${shorten(warehouse)}`,
    ),
    ...events.map(
      (event) =>
        `    event ${event.id}: ${event.type}, ${event.outcome}, received ${timeAgo(event.receivedAt)}`,
    ),
  ];
}
