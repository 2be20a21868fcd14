import { type AuditResource, auditResources } from '../../contract/endpoints.ts';
import type { KeptBy } from '../../db/deletes/kept.ts';
import type { EventBehind } from '../../db/read/behind-differences.ts';
import type { Difference } from '../../db/read/compare-records.ts';

export interface ResourceAudit {
  compared: number;
  missing: number;
  extra: number;
  different: number;
  /** Listings that contradict themselves, so that nothing shows what the service has. */
  suspect: number;
  /** Listings that the service refused to show. Nothing is known about their records. */
  unread: number;
  /** Rows that the service no longer has, and that somebody decided to keep. They are not differences. */
  kept: number;
  /** Values that no column can hold. They are not differences, because `raw` has them. */
  unreadable: number;
}

/** A difference, or a listing of a company or meter that contradicts itself or was refused. */
export interface Found extends Omit<Difference, 'state'> {
  readonly state: Difference['state'] | 'suspect' | 'unread';
  /** Why a listing is suspect or unread. */
  readonly reason?: string;
}

export interface Example extends Found {
  readonly resource: AuditResource;
  /** The latest events about the record, newest first. */
  readonly events: readonly EventBehind[];
  /** Why Postgres refused the record, if it did; its text is in `metersync.rejected_records`. */
  readonly refused?: string | undefined;
}

export interface AuditReport {
  compared: number;
  differences: number;
  resources: Record<AuditResource, ResourceAudit>;
  /** How many rows are kept although the service no longer has them, and by whose decisions. */
  kept: { rows: number; decisions: readonly KeptBy[] };
  /** Examples of the differences, for people: unread listings, then the first by resource and id. */
  examples: Example[];
}

const examplesMax = 50;

export function emptyReport(): AuditReport {
  const none = () => ({
    compared: 0,
    missing: 0,
    extra: 0,
    different: 0,
    suspect: 0,
    unread: 0,
    kept: 0,
    unreadable: 0,
  });
  const resources = Object.fromEntries(auditResources.map((name) => [name, none()]));
  return {
    compared: 0,
    differences: 0,
    resources: resources as AuditReport['resources'],
    kept: { rows: 0, decisions: [] },
    examples: [],
  };
}

/** Adds a comparison. The order in which the parts of an audit are added does not change the report. */
export function addTo(
  report: AuditReport,
  resource: AuditResource,
  differences: readonly Found[],
  compared: number,
  unreadable = 0,
): void {
  const counts = report.resources[resource];
  counts.unreadable += unreadable;
  counts.compared += compared;
  report.compared += compared;
  for (const difference of differences) {
    counts[difference.state] += 1;
    if (difference.state === 'kept') {
      report.kept.rows += 1;
      continue;
    }
    report.differences += 1;
    addExample(report.examples, { ...difference, resource, events: [] });
  }
}

export function addReport(report: AuditReport, part: AuditReport): void {
  for (const resource of auditResources) {
    const [counts, more] = [report.resources[resource], part.resources[resource]];
    counts.compared += more.compared;
    counts.missing += more.missing;
    counts.extra += more.extra;
    counts.different += more.different;
    counts.suspect += more.suspect;
    counts.unread += more.unread;
    counts.kept += more.kept;
    counts.unreadable += more.unreadable;
  }
  report.compared += part.compared;
  report.differences += part.differences;
  report.kept.rows += part.kept.rows;
  for (const example of part.examples) addExample(report.examples, example);
}

function addExample(examples: Example[], example: Example): void {
  const place = examples.findLastIndex((other) => inOrder(other, example) <= 0) + 1;
  if (place === examplesMax) return;
  examples.splice(place, 0, example);
  if (examples.length > examplesMax) examples.pop();
}

const rank = new Map(auditResources.map((resource, place) => [resource, place]));

/** Listings that were not read come first, because any number of differences may be behind them. */
function inOrder(a: Example, b: Example): number {
  return (
    Number(b.state === 'unread') - Number(a.state === 'unread') ||
    (rank.get(a.resource) ?? 0) - (rank.get(b.resource) ?? 0) ||
    byText(a.id, b.id) ||
    byText(a.state, b.state)
  );
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
