import fc from 'fast-check';
import type { DeliveredEvent } from '../../contract/event.ts';
import type { Change as Mutation } from '../../sandbox/changes/schema.ts';
import { fromMembers, toMembers } from '../../sandbox/records/texts.ts';
import { connectionEvent, delivery, documentEvent, intervalsEvent } from '../support/events.ts';
import type { Backup, Circumstances, Service } from './service.ts';

const documentChanges = [
  ...(['create', 'correct', 'usage', 'meter', 'more rows', 'fewer rows', 'touch'] as const),
  // A deleted document is listed as deleted; a lost document is not listed at all.
  ...(['delete', 'lose', 'return', 'move', 'move without its name', 'list twice'] as const),
];
const connectionChanges = ['status', 'sites', 'touch', 'lose', 'return', 'move', 'list twice'] as const;
const meterChanges = ['lose', 'return', 'move', 'list twice'] as const;

/** A change at the service, whose events a history may deliver. `pick` chooses among all records of the kind. */
export type Change =
  | Picked<'document', (typeof documentChanges)[number]>
  | Picked<'connection', (typeof connectionChanges)[number]>
  | Picked<'meter', (typeof meterChanges)[number]>
  /** Readings of a stretch of the slots: quarters of an hour or whole hours, in place of what was there. */
  | {
      readonly of: 'readings';
      readonly how: 'add' | 'import as hours' | 'remove' | 'remove silently';
      readonly pick: number;
      readonly from: number;
      readonly slots: number;
      readonly units: 'kWh' | 'kW';
    }
  | { readonly of: 'company'; readonly how: 'leave' | 'return'; readonly pick: number };

interface Picked<Of extends string, How extends string> {
  readonly of: Of;
  readonly how: How;
  readonly pick: number;
  /** Whether the record keeps its `updated`, and nobody is told. */
  readonly silent: boolean;
}

const forgeries = ['document', 'deletion', 'future deletion', 'move', 'connection', 'readings'] as const;
/** An event that somebody who can sign makes up, about records that exist or do not. */
export type Forgery = (typeof forgeries)[number];

const picked = <Of extends string, How extends string>(of: Of, how: readonly How[]) =>
  fc.record({
    of: fc.constant(of),
    how: fc.constantFrom(...how),
    pick: fc.nat(5),
    silent: fc.boolean(),
  }) as fc.Arbitrary<Picked<Of, How>>;

export const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 6, arbitrary: picked('document', documentChanges) },
  { weight: 3, arbitrary: picked('connection', connectionChanges) },
  { weight: 2, arbitrary: picked('meter', meterChanges) },
  {
    weight: 4,
    arbitrary: fc.record({
      of: fc.constant('readings' as const),
      how: fc.constantFrom(...(['add', 'add', 'import as hours', 'remove', 'remove silently'] as const)),
      pick: fc.nat(2),
      from: fc.nat(7),
      slots: fc.integer({ min: 1, max: 8 }),
      units: fc.constantFrom(...(['kWh', 'kWh', 'kW'] as const)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      of: fc.constant('company' as const),
      how: fc.constantFrom(...(['leave', 'return', 'return'] as const)),
      pick: fc.nat(1),
    }),
  },
);
export const forgery = fc.constantFrom(...forgeries);

/** Changes of which the service sends no event. */
const untold = ['lose', 'return', 'move', 'move without its name', 'list twice'];

/** A change as a service makes it that tells all changes by events; undefined for one without an event. */
export function asTold(change: Change): Change | undefined {
  if (change.of === 'readings')
    return change.how === 'remove silently' ? { ...change, how: 'remove' } : change;
  if (change.of === 'meter' || change.of === 'company' || untold.includes(change.how)) return undefined;
  return { ...change, silent: false };
}

/** The company of records that nobody lists. */
const nobody = '00000000-0000-4000-8000-0000000000ff';
const nowhere = '00000000-0000-4000-8000-0000000000bb';

const tableOf = { document: 'documents', connection: 'connections', meter: 'meters' } as const;
type Kind = keyof typeof tableOf;

/** An event of the service, or a forged one. */
export interface Announced {
  readonly event: DeliveredEvent;
  /** Whether somebody made it up. */
  readonly forged: boolean;
}

/** Two companies with their records, and all changes to them. */
export class Records {
  /** The events so far, in their order. */
  events: Announced[] = [];
  companies: readonly [string, string] = ['', ''];
  /** Ids of companies and meters that only forged events name. */
  readonly made = new Set<string>();
  /** Whether a company ever left: the records of such a company go without a decision. */
  hasLeft = false;
  readonly #service: Service;
  readonly #homes = new Map<string, string>();
  #first: Backup | undefined;
  #seen = 0;

  constructor(service: Service) {
    this.#service = service;
  }

  /** Begins a history with the same records as every other. */
  async begin(circumstances: Circumstances): Promise<void> {
    const isFirst = this.#first === undefined;
    if (isFirst) await this.#service.begin({ ...circumstances, aheadHours: -1_000 }, 0);
    else await this.#service.begin(circumstances, 1_000);
    this.events = [];
    this.made.clear();
    this.hasLeft = false;
    this.#homes.clear();
    if (this.#first === undefined) {
      await this.#create();
      this.#first = await this.#service.backup();
      return await this.begin(circumstances);
    }
    await this.#service.restore(this.#first);
    await this.#service.pool.query('delete from sandbox.events');
    this.#seen = 0;
  }

  async #create(): Promise<void> {
    const ids = Array.from({ length: 2 }, () => this.#service.newId());
    this.companies = ids as [string, string];
    for (const [at, id] of this.companies.entries()) {
      await this.#apply({ type: 'createCompany', id });
      const { rows } = await this.#service.pool.query<{ id: string }>(
        `with branch as (
          insert into sandbox.sites (id, company_id, name, time_zone, members)
          select $2, company_id, 'Branch', time_zone, members from sandbox.sites where company_id = $1)
        select id from sandbox.sites where company_id = $1`,
        [id, this.#service.newId()],
      );
      const connectionId = this.#service.newId();
      await this.#apply({ type: 'createConnection', id: connectionId, companyId: id });
      for (let meters = 0; meters < 2 - at; meters++) {
        const meterId = this.#service.newId();
        const account = { connectionId, siteId: rows[0]?.id, meterId, id: this.#service.newId() };
        await this.#apply({ type: 'addAccount', ...account, datasourceType: 'ELECTRICITY' } as Mutation);
        await this.#apply({
          type: 'createDocument',
          id: this.#service.newId(),
          meterId,
          billDate: '2026-03-01',
        });
        await this.#apply(sync(meterId, 0, 6));
      }
    }
  }

  async change(change: Change): Promise<void> {
    if (change.of === 'company') await this.#enrol(change.pick, change.how === 'return');
    else if (change.of === 'readings') await this.#changeReadings(change);
    else await this.#changeRecord(change);
    await this.#collect(!('silent' in change && change.silent));
  }

  /** Makes up an event. */
  async forge(of: Forgery): Promise<void> {
    const id = this.#service.newId();
    const [document] = await this.#ids('document');
    const { updated, company_id: companyId } = document ?? { updated: '', company_id: '' };
    const named = (of: string) => ({ company: { id: of, name: 'Whoever' }, site: { id, name: 'Nowhere' } });
    const at = '2026-03-01T00:00:00.000001';
    const payloads: Record<Forgery, () => object> = {
      document: () => documentEvent('created', this.#service.newId(), at, named(this.#invent(id))),
      deletion: () => documentEvent('deleted', document?.id ?? id, updated, named(companyId)),
      'future deletion': () =>
        documentEvent('deleted', document?.id ?? id, '2099-01-01T00:00:00', named(companyId)),
      move: () =>
        documentEvent('updated', document?.id ?? id, stamp(Date.now()), named(this.#other(companyId))),
      connection: () => ({
        ...connectionEvent('created', this.#service.newId(), at, 'PENDING'),
        company: named(this.#invent(id)).company,
      }),
      readings: () => intervalsEvent(this.#invent(id), '2026-01-01T00:00:00', '2026-01-02T00:00:00', 96),
    };
    this.events.push({ event: delivery(payloads[of](), `msg_${this.#service.newId()}`), forged: true });
  }

  /** Notes that only made-up events name this company or meter. */
  #invent(id: string): string {
    this.made.add(id);
    return id;
  }

  #other = (company: string): string => this.companies.find((one) => one !== company) ?? company;

  async #changeRecord({
    of,
    how,
    pick,
    silent,
  }: Exclude<Change, { of: 'company' | 'readings' }>): Promise<void> {
    const all = await this.#ids(of);
    const record = all[pick % all.length];
    if (record === undefined) return;
    const { id } = record;
    if (how === 'lose') await this.#move(of, id, nobody, record.company_id);
    else if (how === 'return') await this.#return(of, id);
    else if (how === 'list twice')
      this.#service.listTwice(this.#other(record.company_id), { kind: of, id, owner: record.company_id });
    else if (record.company_id === nobody) return;
    else if (how === 'move' || how === 'move without its name') {
      const to = this.#other(record.company_id);
      await this.#move(of, id, to, record.company_id);
      if (how === 'move' && of !== 'meter') await this.#rename(of, id, to);
    } else await this.#apply(await this.#mutation(of, how, id, pick));
    if (silent && of !== 'meter')
      for (const table of of === 'document' ? ['documents', 'usage_data'] : ['connections'])
        await this.#service.pool.query(
          `update sandbox.${table} set updated = $2 where ${table === 'usage_data' ? 'document_id' : 'id'} = $1`,
          [id, record.updated],
        );
  }

  async #mutation(of: Kind, how: string, id: string, pick: number): Promise<Mutation | undefined> {
    if (of === 'connection') {
      if (how === 'status')
        return { type: 'updateConnection', connectionId: id, status: `STATUS_${'ABCDEF'[pick]}` } as Mutation;
      if (how === 'touch') return { type: 'touch', resource: 'connection', id };
      const { rows } = await this.#service.pool.query<{ id: string }>(
        'select s.id from sandbox.sites s join sandbox.connections k using (company_id) where k.id = $1',
        [id],
      );
      return { type: 'assignSites', connectionId: id, siteIds: rows.slice(pick % 2).map((site) => site.id) };
    }
    const meters = (await this.#ids('meter')).map((meter) => meter.id);
    const meterId = meters[pick % meters.length] ?? '';
    if (how === 'create') return { type: 'createDocument', id: this.#service.newId(), meterId };
    if (how === 'touch') return { type: 'touch', resource: 'document', id };
    if (how === 'delete') return { type: 'deleteDocument', documentId: id };
    if (how === 'more rows' || how === 'fewer rows') await this.#resize(id, how === 'more rows');
    const reason = ({ meter: 'meterAssignment', usage: 'usageUpdate' } as const)[how] ?? 'correction';
    return { type: 'reprocessDocument', documentId: id, reason, ...(how === 'meter' && { meterId }) };
  }

  /** Changes the number of readings on a bill. The next correction writes them. */
  async #resize(id: string, more: boolean): Promise<void> {
    const { pool } = this.#service;
    const { rows } = await pool.query<{ bill: string }>('select bill from sandbox.documents where id = $1', [
      id,
    ]);
    const bill = JSON.parse(rows[0]?.bill ?? '{"readings":[]}') as { readings: object[] };
    const [first, ...rest] = bill.readings;
    if (first === undefined || (!more && rest.length === 0)) return;
    const readings = more ? [first, ...rest, { ...first, usageId: this.#service.newId() }] : rest;
    await pool.query('update sandbox.documents set bill = $2 where id = $1', [
      id,
      JSON.stringify({ ...bill, readings }),
    ]);
  }

  /** Lists a record for another company, which its fields do not say. */
  async #move(of: Kind, id: string, to: string, from: string): Promise<void> {
    if (from !== nobody) this.#homes.set(id, from);
    const { pool } = this.#service;
    await pool.query(`update sandbox.${tableOf[of]} set company_id = $2 where id = $1`, [id, to]);
    if (of === 'document')
      await pool.query('update sandbox.usage_data set company_id = $2 where document_id = $1', [id, to]);
  }

  async #return(of: Kind, id: string): Promise<void> {
    const home = this.#homes.get(id);
    const { rows } = await this.#service.pool.query<{ gone: boolean }>(
      `select company_id = $2 as gone from sandbox.${tableOf[of]} where id = $1`,
      [id, nobody],
    );
    if (rows[0]?.gone && home !== undefined) return await this.#move(of, id, home, nobody);
    if (of !== 'document') return;
    const { rowCount } = await this.#service.pool.query(
      'update sandbox.documents set deleted_at = null where id = $1 and deleted_at is not null',
      [id],
    );
    if (rowCount === 1)
      await this.#apply({ type: 'reprocessDocument', documentId: id, reason: 'usageUpdate' });
  }

  /** Lets a record name its present company. */
  async #rename(of: 'document' | 'connection', id: string, to: string): Promise<void> {
    const { pool } = this.#service;
    const column = of === 'document' ? 'header' : 'members';
    const { rows } = await pool.query<{ text: string; external: string; name: string; public: string }>(
      `select r.${column} as text, c.external_id as external, c.name, c.public_id as public
      from sandbox.${tableOf[of]} r join sandbox.companies c on c.id = $2 where r.id = $1`,
      [id, to],
    );
    const [row] = rows;
    if (row === undefined) return;
    const company = { externalId: row.external, id: to, name: row.name, publicId: row.public };
    const members = toMembers({ ...fromMembers<object>(row.text), company });
    await pool.query(`update sandbox.${tableOf[of]} set ${column} = $2 where id = $1`, [id, members]);
  }

  async #changeReadings({
    how,
    pick,
    from,
    slots,
    units,
  }: Extract<Change, { of: 'readings' }>): Promise<void> {
    const meters = await this.#ids('meter');
    const id = meters[pick % meters.length]?.id;
    if (id === undefined) return;
    if (how !== 'add')
      await this.#service.pool.query(
        `delete from sandbox.intervals i using sandbox.meters m
        where m.number = i.meter_number and m.id = $1 and i.start_at >= $2 and i.start_at < $3`,
        [id, slot(from), slot(from + slots)],
      );
    if (how === 'remove') await this.#replace(id, from, slots);
    else if (how === 'add') await this.#apply(sync(id, from, slots, 900, units));
    else if (how === 'import as hours') await this.#apply(sync(id, from, slots + 3, 3_600, units));
  }

  /** Writes one reading in place of those of a stretch, and tells the stretch, as for any other change. */
  async #replace(meterId: string, from: number, slots: number): Promise<void> {
    await this.#apply(sync(meterId, from, slots));
    const { pool } = this.#service;
    await pool.query(
      `delete from sandbox.intervals i using sandbox.meters m
      where m.number = i.meter_number and m.id = $1 and i.start_at > $2 and i.start_at < $3`,
      [meterId, slot(from), slot(from + slots)],
    );
    await pool.query(
      `update sandbox.events set payload = (payload::jsonb || '{"intervalCount":1,"createdCount":1,"updatedCount":0}')::text
      where seq = (select max(seq) from sandbox.events)`,
    );
  }

  /** Lets a company be listed, or not. */
  async #enrol(pick: number, listed: boolean): Promise<void> {
    if (!listed) this.hasLeft = true;
    await this.#service.pool.query(
      `update sandbox.companies set organization_id = case when $2 then (
        select id from sandbox.organizations order by position limit 1) else $3::uuid end where id = $1`,
      [this.companies[pick % 2], listed, nowhere],
    );
  }

  async #ids(of: Kind) {
    const { rows } = await this.#service.pool.query<{ id: string; company_id: string; updated: string }>(
      `select id, company_id, ${of === 'meter' ? "''" : `to_char(updated, 'YYYY-MM-DD"T"HH24:MI:SS.US')`} as updated
      from sandbox.${tableOf[of]} order by right(id::text, 12)`,
    );
    return rows;
  }

  /** Applies a change of the sandbox, unless the sandbox refuses it. */
  async #apply(mutation: Mutation | undefined): Promise<void> {
    if (mutation === undefined) return;
    await this.#service.changes.apply([mutation]).catch((error: Error & { statusCode?: number }) => {
      if ((error.statusCode ?? 500) >= 500) throw error;
    });
  }

  /** Takes over the events of a change, unless nobody is told. */
  async #collect(told: boolean): Promise<void> {
    const { rows } = await this.#service.pool.query<{ seq: number; id: string; payload: string }>(
      'select seq::int, id, payload from sandbox.events where seq > $1 order by seq',
      [this.#seen],
    );
    for (const { seq, id, payload } of rows) {
      this.#seen = seq;
      if (told) this.events.push({ event: delivery(payload, id), forged: false });
    }
  }
}

const stamp = (ms: number): string => new Date(ms).toISOString().slice(0, 19);
const slot = (at: number): string => stamp(Date.UTC(2026, 4, 1) + at * 900_000);
const sync = (
  meterId: string,
  from: number,
  slots: number,
  granularitySeconds = 900,
  usageUnits = 'kWh',
): Mutation => ({
  type: 'syncIntervals',
  ...{ meterId, start: slot(from), end: slot(from + slots), granularitySeconds },
  ...{ mode: 'both', usageUnits, quality: 'ACTUAL' },
});
