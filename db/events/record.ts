import { sql } from 'drizzle-orm';
import {
  type DeliveredEvent,
  decodeEvent,
  deletingTypes,
  ignoredEvent,
  typeOfEvent,
} from '../../contract/event.ts';
import { Failure, type FailureCode } from '../../contract/failures.ts';
import { isObject, JsonTokens, jsonStopsAt, withoutByteOrderMark } from '../../contract/json.ts';
import { array, isAmong } from '../connection/arrays.ts';
import {
  type Database,
  type Executor,
  type Transaction,
  withTransaction,
} from '../connection/connect.ts';
import {
  constraintOf,
  splitOnRefusal,
  sqlMessage,
  warehouseFailure,
} from '../connection/failures.ts';
import { prepared } from '../connection/prepared.ts';
import type { WrittenRows } from '../records/page.ts';
import { holdableJson, replacedTexts } from '../records/unholdable.ts';
import { journal } from '../schema/metersync.ts';
import { connections, documents } from '../schema/utility.ts';
import { applyConnectionSites, type RecordedEvent, writeHints } from './hints.ts';
import { insertJournal, type JournalEntry, type RecordedBy } from './journal.ts';

/** The result of recording a group. */
export interface Recorded {
  /** Events that were new to the journal, or were recorded again. */
  readonly fresh: number;
  readonly duplicates: number;
  readonly dead: number;
  /** Whether events of the group may be pending. */
  readonly mayWait: boolean;
  /** Rows that the events wrote. Other rows of their records were newer. */
  readonly written: Readonly<Record<'connections' | 'documents', WrittenRows>>;
}

/**
 * Writes a group of verified events to the journal and applies them, in one transaction, idempotent
 * on event ids. If events cannot be applied, the group is split to find them: they are kept as
 * `dead`, with their errors and bytes, and the other events commit.
 * @throws Failure WAREHOUSE_UNAVAILABLE when Postgres is in trouble; nothing is half done then.
 */
export async function recordEvents(
  db: Database,
  events: readonly DeliveredEvent[],
  recording: RecordedBy = {},
): Promise<Recorded> {
  const unique = new Map(events.map((event) => [event.id, event]));
  const entries = await withCompanies(db, [...unique.values()].map(readDelivery));
  const recordInOne = (part: readonly JournalEntry[]): Promise<Recorded> =>
    withTransaction(db, (tx) => recordTogether(tx, part, recording));
  try {
    const refused: JournalEntry[] = [];
    const parts = await splitOnRefusal<JournalEntry, Recorded | undefined>(
      entries,
      recordInOne,
      (only, error) => {
        if (only.error !== null) throw error;
        refused.push(asRefused(only, error));
        return undefined;
      },
    );
    if (refused.length > 0) parts.push(await recordInOne(refused));
    return sumOf(parts.filter((part) => part !== undefined));
  } catch (error) {
    throw warehouseFailure(error);
  }
}

/**
 * Adds a company to each event about a connection or a document that names none: that of the row of
 * its record, or of another event about it. An event about an unknown record is dead.
 */
async function withCompanies(
  db: Database,
  entries: readonly JournalEntry[],
): Promise<readonly JournalEntry[]> {
  const lacks = ({ error, event: { kind, companyId } }: JournalEntry): boolean =>
    error === null && companyId === null && (kind === 'connection' || kind === 'document');
  if (!entries.some(lacks)) return entries;
  const key = (kind: string, id: string | null) => `${kind} ${id}`;
  const companies = new Map(
    entries.flatMap(({ event: { kind, recordId, companyId } }) =>
      companyId ? [[key(kind, recordId), companyId]] : [],
    ),
  );
  for (const [kind, table] of [
    ['connection', connections],
    ['document', documents],
  ] as const) {
    const { id, companyId } = table;
    const of = entries.filter((entry) => lacks(entry) && entry.event.kind === kind);
    const ids = of.flatMap(({ event }) => event.recordId ?? []);
    const rows = await db
      .select({ id, companyId })
      .from(table)
      .where(isAmong(id, ids, 'uuid'));
    for (const row of rows) if (row.companyId) companies.set(key(kind, row.id), row.companyId);
  }
  return entries.map((entry) => {
    if (!lacks(entry)) return entry;
    const { event } = entry;
    const companyId = companies.get(key(event.kind, event.recordId));
    const reason = `${event.type}: company is missing, and its record is unknown`;
    return companyId
      ? { ...entry, event: { ...event, companyId } }
      : asDead(entry, 'EVENT_UNREADABLE', reason);
  });
}

function sumOf(parts: readonly Recorded[]): Recorded {
  const total = (count: (part: Recorded) => number): number =>
    parts.reduce((sum, part) => sum + count(part), 0);
  const rows = (resource: keyof Recorded['written']): WrittenRows => ({
    inserted: total(({ written }) => written[resource].inserted),
    changed: total(({ written }) => written[resource].changed),
  });
  return {
    fresh: total(({ fresh }) => fresh),
    duplicates: total(({ duplicates }) => duplicates),
    dead: total(({ dead }) => dead),
    mayWait: parts.some(({ mayWait }) => mayWait),
    written: { connections: rows('connections'), documents: rows('documents') },
  };
}

const noRows: WrittenRows = { inserted: 0, changed: 0 };

async function recordTogether(
  tx: Transaction,
  entries: readonly JournalEntry[],
  recording: RecordedBy,
): Promise<Recorded> {
  const fresh = await insertJournal(tx, entries, recording);
  const alive = entries.flatMap((entry) => {
    const arrived = fresh.get(entry.id);
    return arrived === undefined || entry.error !== null ? [] : [{ ...entry, ...arrived }];
  });
  const connections = alive.filter(({ event }) => event.kind === 'connection');
  const documents = alive.filter(({ event }) => event.kind === 'document');
  const deleted = alive.flatMap(({ event }) => (event.deletes ? (event.recordId ?? []) : []));
  const waiting = alive.filter(({ outcome }) => outcome === 'pending');
  const named = [...connections, ...documents];
  const duplicates = entries.length - fresh.size;

  const written = { connections: noRows, documents: noRows };
  if (connections.length > 0) {
    written.connections = await writeHints(tx, 'connections', connections);
    await applyConnectionSites(tx, connections);
  }
  if (documents.length > 0) written.documents = await writeHints(tx, 'documents', documents);
  if (named.length > 0) await supersede(tx, named, deleted);
  return {
    fresh: fresh.size,
    duplicates,
    dead: entries.filter(({ id, error }) => fresh.has(id) && error !== null).length,
    // An earlier attempt may have recorded an event that is still pending.
    mayWait: waiting.length + duplicates > 0,
    written,
  };
}

/** Reads a delivery for the journal. Unreadable deliveries are dead, with their bytes. */
function readDelivery(delivery: DeliveredEvent): JournalEntry {
  // The signature also covers the byte order mark, so the receiver left it in the body.
  const text = withoutByteOrderMark(
    delivery.body ?? Buffer.from(delivery.bodyBase64 ?? '', 'base64').toString('utf8'),
  );
  const common = { id: delivery.id, receivedAt: delivery.receivedAt, payload: text, body: null };
  const sound = { ...common, error: null, errorCode: null };
  let payload: unknown;
  try {
    payload = JSON.parse(text);
    const event = decodeEvent(payload);
    if (printsTooLong(text))
      throw new Failure(
        'EVENT_UNREADABLE',
        `its JSON is more than ${printedBytesMax} bytes once its numbers are written out`,
      );
    const held = holdableJson(text);
    if (held === text) return { ...sound, event };
    const heldEvent = decodeEvent(JSON.parse(held));
    if (heldEvent.recordId !== event.recordId)
      return asDead({ ...sound, event }, 'WAREHOUSE_VALUE_REFUSED', unholdableReason);
    const { replaced } = replacedTexts(text);
    const body = Buffer.from(text, 'utf8');
    return { ...sound, event: heldEvent, payload: held, body, replaced };
  } catch (error) {
    const reason =
      error instanceof Failure ? error.message : `not JSON from character ${jsonStopsAt(text)} on`;
    const type = (isObject(payload) && typeOfEvent(payload)) || 'unknown';
    return asDead({ ...sound, event: ignoredEvent(type) }, 'EVENT_UNREADABLE', reason);
  }
}

/** Without these characters, the id of the record would be the id of another record. */
const unholdableReason =
  'the id of its record has NUL or half of a surrogate pair, which Postgres cannot hold';

/** Turns an event that Postgres refused into a dead event. Only Postgres knows the order of two times. */
function asRefused(entry: JournalEntry, error: unknown): JournalEntry {
  if (constraintOf(error) === 'journal_ranges_have_a_length')
    return asDead(entry, 'EVENT_UNREADABLE', `${entry.event.type}: start is after end`);
  return asDead(entry, 'WAREHOUSE_VALUE_REFUSED', sqlMessage(error));
}

/** Turns an event into a dead event with its bytes and only values that Postgres surely accepts. */
function asDead(entry: JournalEntry, errorCode: FailureCode, reason: string): JournalEntry {
  const { type, recordId } = entry.event;
  const event = {
    ...entry.event,
    type: withoutNul(type).slice(0, 200),
    recordId: recordId && withoutNul(recordId).slice(0, 200),
    occurredAt: null,
  };
  const body = entry.body ?? Buffer.from(entry.payload ?? '', 'utf8');
  return { ...entry, event, payload: null, body, error: withoutNul(reason), errorCode };
}

/** Escapes NUL, which an error may quote and Postgres's text cannot hold. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '\\0').toWellFormed().slice(0, 2_000);
}

/**
 * Maximum bytes of a payload as Postgres prints it. A number such as 1e131071 is eight bytes of a
 * signed body and 131,072 digits when it is printed, so a few kilobytes of such numbers become
 * gigabytes. A replay sends payloads as base64, and a payload of this size then still fits into one
 * Temporal payload (2 MiB). A body within the receiver's 1 MiB exceeds it only if it was built to
 * do so.
 */
const printedBytesMax = 1_500_000;

const exponent = /\d[eE]([-+]?\d+)/;

/** Whether JSON exceeds `printedBytesMax` as printed; short text without exponent does not. */
function printsTooLong(json: string): boolean {
  const mayBe = 2 * Buffer.byteLength(json) > printedBytesMax || exponent.test(json);
  return mayBe && printedBytes(json) > printedBytesMax;
}

/** Returns the maximum number of bytes that Postgres prints for valid JSON. */
export function printedBytes(json: string): number {
  const tokens = new JsonTokens(json);
  let bytes = Buffer.byteLength(json);
  while (tokens.next()) {
    // It prints a space after each colon and comma.
    if (tokens.kind === 'name' || tokens.kind === 'comma') bytes += 1;
    if (tokens.kind !== 'number') continue;
    const [, digits] = exponent.exec(json.slice(tokens.from, tokens.to)) ?? [];
    bytes += Math.abs(Number(digits ?? 0));
  }
  return bytes;
}

/**
 * Settles events as superseded that the rows of their records show to be over. Of the pending events
 * of this group, these are the events that are older than the state last read or covered by the recent
 * deletion of an event; the usage of a document must have been read, too. Of the other pending and
 * missing events, these are the events of documents that this group deleted. A pending deletion has
 * taken effect, but waits until the service no longer shows the document. All writes to records come
 * before, so that the later of two groups sees what the earlier group wrote.
 */
async function supersede(
  tx: Executor,
  events: readonly RecordedEvent[],
  deleted: readonly string[],
): Promise<void> {
  const ids = array(
    events.map(({ id }) => id),
    'text',
  );
  await prepared(tx, 'supersede').execute(sql`
    with named as materialized (
      select id, kind, type, record_id, outcome, occurred_at
      from ${journal}
      where id = any(${ids})
    ), older as materialized (
      select e.id
      from named e
        left join ${documents} d on e.kind = 'document' and d.id = e.record_id::uuid
        left join ${connections} c on e.kind = 'connection' and c.id = e.record_id::uuid
      where e.outcome = 'pending'
        and (
          e.occurred_at < d.raw_updated and d.usage_read_at >= d.synced_at
          or e.type <> all(${array(deletingTypes, 'text')})
            and d.deleted_reason = 'event'
            and e.occurred_at <= d.updated
            and d.hint_came > clock_timestamp() - metersync.api_lag()
          or e.occurred_at < c.raw_updated
        )
    ), of_deleted as materialized (
      select e.id
      from unnest(${array([...deleted].sort(), 'uuid')}) as deleted (id)
        join ${documents} d on d.id = deleted.id
        cross join lateral (
          select id
          from ${journal}
          where record_id = d.id::text
            and kind = 'document'
            and outcome in ('pending', 'missing')
            and type <> all(${array(deletingTypes, 'text')})
            and occurred_at <= d.updated
          for no key update skip locked
        ) e
      where d.deleted_reason = 'event'
    )
    update ${journal} set
      outcome = 'superseded',
      settled_at = statement_timestamp(),
      queue = null,
      due_at = null,
      error = null,
      error_code = null,
      attempts = 0
    where id = any(array(select id from older union select id from of_deleted))`);
}
