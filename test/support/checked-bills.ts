import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { refreshDataIssues } from '../../db/checks/check-data.ts';
import type { Warehouse } from '../../db/connection/connect.ts';
import { BilledCompany, type BillSaid, type UsageSaid } from './bills.ts';

/** The day of these checks. */
export const today = '2026-02-10';
export const meterId = () => `meter/${randomUUID()}`;

export async function companyWith(warehouse: Warehouse, ...meters: string[]): Promise<BilledCompany> {
  const company = new BilledCompany(warehouse);
  await company.add(Object.fromEntries(meters.map((id) => [id, {}])));
  return company;
}

/** The twelve months of 2025. A meter with a bill for each of them has no issue. */
export const months = Array.from({ length: 12 }, (_, at) => ({
  start: new Date(Date.UTC(2025, at, 1)).toISOString().slice(0, 10),
  end: new Date(Date.UTC(2025, at + 1, 0)).toISOString().slice(0, 10),
}));
export const january = { start: '2026-01-01', end: '2026-01-31' };

/** A bill of a meter for a month of 2025, or for January 2026 from number 12 on. */
export function billOf(
  meter: string,
  at: number,
  usage: Partial<UsageSaid> = {},
  more: Partial<BillSaid> = {},
): BillSaid {
  const days = months[at] ?? january;
  const end = usage.end ?? days.end;
  const dates = { startDate: usage.start ?? days.start, endDate: end, billDate: end };
  return {
    billed: at,
    cost: `${100 + at}.00`,
    ...more,
    usage: [{ meterId: meter, ...days, usage: `${3000 + at * 7}`, ...usage }],
    more: { accountNumber: meter, utilityCompany: 'City Power', ...dates, ...more.more },
  };
}

/** The bills of a meter for 2025 and January 2026, except some. */
export const year = (meter: string, ...without: readonly number[]): BillSaid[] =>
  [...months, january].map((_, at) => billOf(meter, at)).filter(({ billed }) => !without.includes(billed));

export const check = (warehouse: Warehouse, ...companies: readonly BilledCompany[]) =>
  refreshDataIssues(
    warehouse.db,
    companies.map(({ id }) => id),
    { today },
  );

export interface Issue extends Record<string, unknown> {
  readonly check_name: string;
  readonly entity_id: string;
  readonly subject: string;
  readonly evidence: Record<string, unknown>;
  readonly open: boolean;
}

/** Lists the issues of a company, open and closed, whose check has a name like this. */
export async function issues(warehouse: Warehouse, company: BilledCompany, like = ''): Promise<Issue[]> {
  const { rows } = await warehouse.db.execute<Issue>(sql`
    select check_name, severity, entity_type, entity_id, subject, evidence, closed_at is null as open
    from ops.data_issues
    where company_id = ${company.id}::uuid and check_name ~ ${like}
    order by id`);
  return rows;
}

/** Tombstones the rows of a company, or restores them. */
export const setDeleted = (
  warehouse: Warehouse,
  company: BilledCompany,
  table: 'documents' | 'usage_data',
  deleted = true,
) =>
  warehouse.db.execute(sql`
    update utility.${sql.identifier(table)} set deleted_at = case when ${deleted} then now() end
    where company_id = ${company.id}::uuid`);
