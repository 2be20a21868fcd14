import { sql } from 'drizzle-orm';
import type { Executor } from '../connect.ts';

/** A connection that collects nothing, as analytics.connections_needing_attention says it. */
export interface NeedsAttention {
  readonly connectionId: string;
  readonly companyId: string;
  readonly company: string | null;
  readonly provider: string | null;
  readonly status: string;
  readonly since: string | null;
  readonly whatToDo: string;
  readonly customerMustAct: boolean;
  readonly dataUntil: string | null;
  readonly isLate: boolean | null;
}

/** Lists connections that need somebody: those that stay so until a customer acts first, then the oldest. */
export async function connectionsNeedingAttention(
  db: Executor,
  limit: number,
): Promise<NeedsAttention[]> {
  const result = await db.execute<NeedsAttention & Record<string, unknown>>(sql`
    select
      connection_id as "connectionId",
      company_id as "companyId",
      company,
      provider,
      status,
      since::text as since,
      what_to_do as "whatToDo",
      customer_must_act as "customerMustAct",
      data_until::text as "dataUntil",
      is_late as "isLate"
    from analytics.connections_needing_attention
    order by customer_must_act desc, connections_needing_attention.since nulls last, connection_id
    limit ${limit}`);
  return result.rows;
}
