import { randomUUID } from 'node:crypto';
import type { DeliveredEvent } from '../../contract/event.ts';
import type { IntervalColumns } from '../../db/readings/texts.ts';
import { connectionEvent, delivery, documentEvent, intervalsEvent } from './events.ts';

/** A change at the service of one document, one connection or a few readings of a meter. */
export type Change =
  /** `silent` changes keep `updated`. Only `restore` changes a deleted document, and no other. */
  | { readonly of: 'document'; readonly how: DocumentChange; readonly silent: boolean }
  | { readonly of: 'connection'; readonly how: 'status' | 'sites'; readonly silent: boolean }
  /** The reading of a slot and `wide` readings after it, in one event. */
  | { readonly of: 'readings'; readonly slot: number; readonly wide: number; readonly value: number };

export type DocumentChange = 'add' | 'edit' | 'remove' | 'keep' | 'site' | 'delete' | 'restore';

/** How the service of a life behaves. */
export interface Habits {
  readonly deletionMovesUpdated: boolean;
  /** Whether records contain their sites, or only events do. */
  readonly recordsListSites: boolean;
  readonly readingsHaveUpdated: boolean;
  /** How far the receiver's clock is off. */
  readonly receiverAheadSeconds: number;
  /**
   * With `late`, answers may show an earlier state. With `anyhow`, answers may also leave records out and
   * changes may be silent, so that only a later answer proves that a state is newer.
   */
  readonly answers: 'as it is' | 'late' | 'anyhow';
}

interface UsageRow {
  readonly id: string;
  readonly usage: string;
  readonly updated: string;
}

interface DocumentState {
  readonly updated: string;
  readonly siteId: string;
  readonly note: string;
  readonly usage: readonly UsageRow[];
  readonly deleted: boolean;
}

interface ConnectionState {
  readonly updated: string;
  readonly status: string;
  readonly sites: readonly string[];
}

export interface Reading {
  readonly slot: number;
  readonly usage: string;
  readonly updated: string;
}

/** The service's state of a life at a moment. */
export interface LifeState {
  readonly document: DocumentState;
  readonly connection: ConnectionState;
  readonly readings: readonly Reading[];
  /** Whether listings leave it out completely, and single records are not found. */
  readonly hidden: boolean;
}

/** How an answer differs from the truth, if the habits of the life's service allow it. */
export interface Departure {
  /** How many changes ago the answer was true. */
  readonly late: number;
  readonly hides: boolean;
}

export interface Place {
  readonly company: { readonly id: string; readonly name: string };
  readonly meterId: string;
  /** Number of the life. Each life has its own stretch of the meter's time. */
  readonly number: number;
}

export const slots = 3;
const slotMinutes = 15;
const stretchMinutes = 2 * slots * slotMinutes;

/** One document, one connection and a stretch of a meter's readings at the service. */
export class Life {
  readonly documentId = randomUUID();
  readonly connectionId = randomUUID();
  readonly place: Place;
  readonly habits: Habits;
  /** Events in the order in which the service made them. */
  readonly events: DeliveredEvent[] = [];
  readonly statusChanges = new Set<string>();
  readonly #sites = [randomUUID(), randomUUID()] as const;
  #moves = 0;
  /** The state after each change. */
  readonly #past: LifeState[] = [];

  constructor(place: Place, habits: Habits) {
    this.place = place;
    this.habits = habits;
    const updated = this.#nextUpdated();
    const [siteId] = this.#sites;
    this.#past.push({
      document: { updated, siteId, note: 'new', usage: [], deleted: false },
      connection: { updated, status: 'PENDING', sites: [siteId] },
      readings: [],
      hidden: false,
    });
    this.#announceDocument('created');
    this.#announceConnection('created');
  }

  /** The present state. */
  get current(): LifeState {
    return this.#past.at(-1) as LifeState;
  }

  /** Returns the state that an answer of the service shows now. */
  answer({ late, hides }: Departure): LifeState {
    const { answers } = this.habits;
    const { current } = this;
    if (answers === 'as it is') return current;
    const then = this.#past.at(-1 - late) ?? current;
    return { ...then, hidden: hides && answers === 'anyhow' };
  }

  change(change: Change): void {
    if (change.of === 'document') this.#changeDocument(change.how, change.silent);
    else if (change.of === 'connection') this.#changeConnection(change.how, change.silent);
    else this.#changeReadings(change.slot, change.wide, change.value);
  }

  /** Makes the records of a listing at a moment, in the service's form. */
  documents({ document, hidden }: LifeState) {
    if (document.deleted || hidden) return [];
    const { updated, siteId, note } = document;
    const site = this.habits.recordsListSites ? { site: { id: siteId } } : {};
    const usageData = document.usage.map((row) => ({ ...row, ...site }));
    return [
      { id: this.documentId, company: this.place.company.id, updated, note, usageData, ...site } as const,
    ];
  }

  usage({ document, hidden }: LifeState) {
    if (hidden) return [];
    return document.usage.map((row) => ({ ...row, document: { id: this.documentId } }));
  }

  connections({ connection, hidden }: LifeState) {
    if (hidden) return [];
    const { updated, status, sites } = connection;
    const relations = this.habits.recordsListSites ? { sitesRelations: relationsOf(sites) } : {};
    return [{ id: this.connectionId, company: this.place.company, updated, status, ...relations } as const];
  }

  readings({ readings, hidden }: LifeState): readonly Reading[] {
    return hidden ? [] : readings;
  }

  /** Writes the start of a slot in the service's form. */
  timeOf(slot: number): string {
    const minutes = this.place.number * stretchMinutes + slot * slotMinutes;
    return new Date(Date.UTC(2026, 0, 1) + minutes * 60_000).toISOString().slice(0, 19);
  }

  #nextUpdated(): string {
    this.#moves += 1;
    return `2026-03-01T00:00:00.${String(this.#moves).padStart(6, '0')}`;
  }

  #changeDocument(how: DocumentChange, wantsSilent: boolean): void {
    const before = this.current.document;
    const silent = this.#silently(wantsSilent);
    if ((how === 'restore') !== before.deleted) return;
    const moves = how === 'restore' || (how === 'delete' ? this.habits.deletionMovesUpdated : !silent);
    const updated = moves ? this.#nextUpdated() : before.updated;
    const row = (id: string): UsageRow => ({ id, usage: `${this.events.length}.10`, updated });
    const [first, ...rest] = before.usage;
    let { usage, siteId } = before;
    if (how === 'add') usage = [...usage, row(randomUUID())];
    else if (how === 'edit' && first !== undefined) usage = [row(first.id), ...rest];
    else if (how === 'remove') usage = rest;
    else if (how === 'delete') usage = [];
    // If only events contain the site, two different events with the same `updated` could not be ordered.
    else if (how === 'site' && (!silent || this.habits.recordsListSites)) siteId = this.#otherSite(siteId);
    const note = `after ${this.events.length} events`;
    this.#add({ document: { updated, siteId, note, usage, deleted: how === 'delete' } });
    this.#announceDocument(how === 'delete' ? 'deleted' : 'updated');
  }

  #changeConnection(how: 'status' | 'sites', wantsSilent: boolean): void {
    const before = this.current.connection;
    const silent = this.#silently(wantsSilent);
    if (how === 'sites' && silent && !this.habits.recordsListSites) return;
    const updated = silent ? before.updated : this.#nextUpdated();
    const status = how === 'status' ? `STATUS_${this.events.length % 3}` : before.status;
    const sites = how === 'sites' ? this.#sites.filter((site) => !before.sites.includes(site)) : before.sites;
    this.#add({ connection: { updated, status, sites } });
    this.#announceConnection('updated', before.status);
  }

  #changeReadings(slot: number, wide: number, value: number): void {
    const updated = this.#nextUpdated();
    const end = Math.min(slot + 1 + wide, slots);
    const changed = Array.from({ length: end - slot }, (_, at) => ({
      slot: slot + at,
      usage: `${value}.5`,
      updated,
    }));
    const others = this.current.readings.filter((reading) => reading.slot < slot || reading.slot >= end);
    this.#add({ readings: [...others, ...changed].sort((a, b) => a.slot - b.slot) });
    const { meterId } = this.place;
    this.#emit(intervalsEvent(meterId, this.timeOf(slot), this.timeOf(end), changed.length));
  }

  /** No change is silent if answers may be late, because the states could not be ordered. */
  #silently = (silent: boolean): boolean => silent && this.habits.answers !== 'late';

  #otherSite = (siteId: string): string => this.#sites.find((other) => other !== siteId) ?? siteId;

  #add(changed: Partial<LifeState>): void {
    this.#past.push({ ...this.current, ...changed });
  }

  #announceDocument(type: 'created' | 'updated' | 'deleted'): void {
    const { updated, siteId } = this.current.document;
    const { company } = this.place;
    this.#emit(
      documentEvent(type, this.documentId, updated, { company, site: { id: siteId, name: 'A site' } }),
    );
  }

  #announceConnection(type: 'created' | 'updated', old?: string): void {
    const { updated, status, sites } = this.current.connection;
    const event = connectionEvent(type, this.connectionId, updated, status, old);
    this.#emit({ ...event, company: this.place.company, sitesRelations: relationsOf(sites) });
    this.statusChanges.add(`${updated} ${status}`);
  }

  #emit(payload: object): void {
    const receivedAt = new Date(Date.now() + this.habits.receiverAheadSeconds * 1000).toISOString();
    this.events.push({ ...delivery(payload), receivedAt });
  }
}

const relationsOf = (sites: readonly string[]) =>
  sites.map((id) => ({
    site: { id, name: 'A site' },
    accountIds: ['a-1'],
    datasourceTypes: ['ELECTRICITY'],
  }));

/** Puts readings of lives into columns, in the service's form. */
export function columnsOf(readings: readonly (Reading & { readonly life: Life })[]): IntervalColumns {
  return {
    startAt: readings.map(({ life, slot }) => life.timeOf(slot)),
    endAt: readings.map(({ life, slot }) => life.timeOf(slot + 1)),
    granularitySeconds: readings.map(() => null),
    usage: readings.map(({ usage }) => usage),
    usageUnits: readings.map(() => 'kWh'),
    quality: readings.map(() => 'MEASURED'),
    updated: readings.map(({ life, updated }) => (life.habits.readingsHaveUpdated ? updated : null)),
    id: readings.map(() => null),
  };
}
