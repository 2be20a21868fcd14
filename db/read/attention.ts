import { and, desc, eq, gt, isNull, sql } from 'drizzle-orm';
import { literal, unnested } from '../connection/arrays.ts';
import type { Executor } from '../connection/connect.ts';
import { connections } from '../schema/utility.ts';
import { consoleBounds } from './bounds.ts';
import { connectionsNeedingAttention as needingAttention, unwellConnections } from './views.ts';

/** Lists statuses that need attention. Look-ups in an index avoid reading all connections. */
async function unwellStatuses(db: Executor) {
  const { status } = connections;
  const statuses: { status: string; needs: boolean; customer: boolean }[] = [];
  for (;;) {
    const last = statuses.at(-1);
    const [next] = await db
      .select({
        status: sql<string>`${status}`,
        needs: sql<boolean>`metersync.needs_attention(${status})`,
        customer: sql<boolean>`metersync.customer_must_act(${status})`,
      })
      .from(connections)
      .where(and(isNull(connections.deletedAt), gt(status, last?.status ?? '')))
      .orderBy(status)
      .limit(1);
    if (next === undefined) return statuses.filter(({ needs }) => needs);
    statuses.push(next);
  }
}

/**
 * Lists connections that need attention, by whether a customer must act and by age of status. How
 * far bills reach is worked out only for listed connections. `looked` is the number of connections
 * that it examined.
 */
export async function connectionsNeedingAttention(
  db: Executor,
  { limit }: { readonly limit: number },
) {
  const among = consoleBounds.connectionsMax;
  const unwell = unnested('unwell', await unwellStatuses(db), [
    ['status', 'text', ({ status }) => status],
    ['customer', 'boolean', ({ customer }) => customer],
  ]);
  const few = db
    .select({ id: connections.id })
    .from(connections)
    .where(and(isNull(connections.deletedAt), eq(connections.status, sql`unwell.status`)))
    .orderBy(connections.id)
    .limit(literal(among))
    .as('few');
  const candidate = db
    .$with('candidate')
    .as(
      db
        .select({ id: few.id })
        .from(unwell)
        .crossJoinLateral(few)
        .orderBy(sql`unwell.customer desc`)
        .limit(literal(among)),
    );
  const { connectionId, customerMustAct, since } = unwellConnections;
  const itsState = db
    .select({ customerMustAct, since })
    .from(unwellConnections)
    .where(eq(connectionId, candidate.id))
    .offset(literal(0))
    .as('its_state');
  const first = db
    .select({ id: candidate.id })
    .from(candidate)
    .crossJoinLateral(itsState)
    .orderBy(desc(itsState.customerMustAct), sql`${itsState.since} nulls last`, candidate.id)
    .limit(limit)
    .as('first');
  const needing = db
    .select()
    .from(needingAttention)
    .where(eq(needingAttention.connectionId, first.id))
    .offset(literal(0))
    .as('needing');
  const rows = await db
    .with(candidate)
    .select({
      looked: sql<number>`(select count(*)::int from ${candidate})`,
      connection: {
        connectionId: needing.connectionId,
        companyId: needing.companyId,
        provider: needing.provider,
        company: needing.company,
        status: needing.status,
        since: needing.since,
        whatToDo: needing.whatToDo,
        customerMustAct: needing.customerMustAct,
        dataUntil: needing.dataUntil,
        isLate: needing.isLate,
      },
    })
    .from(first)
    .crossJoinLateral(needing)
    .orderBy(desc(needing.customerMustAct), sql`${needing.since} nulls last`, needing.connectionId);
  return { connections: rows.map((row) => row.connection), looked: rows[0]?.looked ?? 0 };
}
