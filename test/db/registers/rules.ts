/**
 * The rules by which the registers of a record decide what its row shows. Times are numbers of any
 * unit on the clock of the warehouse, except `updated`, which is the service's. A company lists
 * records, and a read by id counts as a listing by the company that the record names.
 */

/** How far an answer may lag behind the service, together with the difference of the clocks. */
export type Lag = number;

/** What one read of the API showed. */
export interface Read {
  /** When the service last changed the record, if the record says so. */
  readonly updated: number | null;
  /** When the walk or the request began. */
  readonly began: number;
  /** The record. Two reads with equal content have the same digest. */
  readonly content: string;
  /** The company whose listing showed the record, or that the record named when it was read by id. */
  readonly lister: string;
  /** The company that the record names. */
  readonly named: string | null;
}

/** What the newest event announced. */
export interface Hint {
  readonly eventId: string;
  readonly updated: number | null;
  readonly deletes: boolean;
  readonly content: string;
  readonly company: string;
  /** When the warehouse recorded the event. */
  readonly came: number;
  /** As of when the event was settled; null while it counts. */
  readonly settled: number | null;
}

/** What a proof found gone. */
export interface Absence {
  /** The company whose proved listing lacks the record; null if reading it by id found nothing. */
  readonly lister: string | null;
  /** When the first and the last proof began. */
  readonly since: number;
  readonly last: number;
  /** `held`: a person has to decide. `kept`: a person decided that the row stays. */
  readonly decision: 'none' | 'held' | 'kept';
}

/** The registers of a record. */
export interface Registers {
  /** The newest read of each company that lists the record. */
  readonly reads: ReadonlyMap<string, Read>;
  readonly hint: Hint | null;
  readonly absence: Absence | null;
}

/** What the columns of a row say. */
export type Shown =
  | { readonly deleted: true; readonly since: number | null }
  | {
      readonly deleted: false;
      readonly content: string;
      readonly updated: number | null;
      readonly company: string;
    };

/** The registers of a record of which nothing is known. */
export const unknown: Registers = { reads: new Map(), hint: null, absence: null };

/** How long after its beginning a read may be answered, because a request is retried. */
export const answeredWithin = 2;

/**
 * Since when a read certainly shows the state that it read: since the record was updated, but not
 * earlier than the lag before the read, and not later than its answer.
 */
export const showsSince = ({ updated, began }: Read, lag: Lag): number =>
  updated === null ? began - lag : Math.max(began - lag, Math.min(updated, began + answeredWithin));

type Key = readonly (number | string | boolean)[];

/** Compares two keys, the most important part first. */
function compare(a: Key, b: Key): number {
  for (const [place, part] of a.entries()) {
    const other = b[place];
    if (part !== other) return part < (other as typeof part) ? -1 : 1;
  }
  return 0;
}

/** The order of the reads of one company. The later one is what the company lists. */
const readKey = (read: Read, lag: Lag): Key => [
  showsSince(read, lag),
  read.began,
  read.content,
  read.updated ?? -1,
  read.named ?? '',
];

/** The order of hints, by the clock of the service. An event without `updated` dates from its coming. */
const hintKey = (hint: Hint): Key => [hintUpdated(hint), hint.deletes, hint.content, hint.came, hint.eventId];

const hintUpdated = ({ updated, came }: Pick<Hint, 'updated' | 'came'>): number => updated ?? came;

/** The hint while its event is not settled. */
const counting = ({ hint }: Registers): Hint | null => (hint?.settled === null ? hint : null);

/**
 * Whether a read is from before a deletion. A read shows the record again if its state is newer, or
 * if it began so much later that it no longer lags behind the deletion.
 */
const isEnded = ({ hint }: Registers, { updated, began }: Read, lag: Lag): boolean =>
  hint?.deletes === true &&
  hint.settled === null &&
  !(updated !== null && updated > hintUpdated(hint)) &&
  began - lag <= hint.came;

/**
 * The read that the row shows if several companies list the record: the one with the latest
 * `updated`. Among equal ones, or if any lacks it, the record belongs to the company that it names,
 * otherwise to the company with the smallest id. Reads that a settled deletion ended come last.
 */
export function shownRead(registers: Registers, lag: Lag): Read | null {
  const all = [...registers.reads.values()];
  const areVersioned = all.every(({ updated }) => updated !== null);
  const ownerKey = (read: Read): Key => [
    isEnded(registers, read, lag),
    areVersioned ? -(read.updated as number) : 0,
    read.named !== read.lister,
    read.lister,
  ];
  return all.sort((a, b) => compare(ownerKey(a), ownerKey(b)))[0] ?? null;
}

/** Whether a proof that began at `at` says something about a state that was read. */
const isLater = (at: number, read: Read, lag: Lag): boolean => at - lag > showsSince(read, lag);

/** Whether the proof of an absence takes effect. */
function isAbsent(registers: Registers, lag: Lag): boolean {
  const { absence } = registers;
  if (absence === null || absence.decision !== 'none') return false;
  const read = shownRead(registers, lag);
  if (read !== null && !isLater(absence.last, read, lag)) return false;
  const hint = counting(registers);
  return hint === null || hint.deletes || hint.came <= absence.last - lag;
}

/** Whether an event deleted the record, and no later read shows it again. */
function isDeletedByEvent(registers: Registers, lag: Lag): boolean {
  const { hint } = registers;
  if (!hint?.deletes) return false;
  const read = shownRead(registers, lag);
  return read === null || isEnded(registers, read, lag);
}

/** Whether a read shows the state of an event, or a newer one. */
const isShown = (hint: Hint, { updated, began }: Read): boolean =>
  updated === null ? began > hint.came : updated >= hintUpdated(hint);

/** Returns what the columns of the row say. */
export function shown(registers: Registers, lag: Lag): Shown {
  const read = shownRead(registers, lag);
  const hint = counting(registers);
  if (isDeletedByEvent(registers, lag)) return { deleted: true, since: registers.hint?.came ?? null };
  if (isAbsent(registers, lag)) return { deleted: true, since: registers.absence?.since ?? null };
  if (read === null && hint === null) return { deleted: true, since: null };
  const announced = hint !== null && (read === null || !isShown(hint, read));
  if (read === null || announced) {
    const { content, company } = hint as Hint;
    return {
      deleted: false,
      content,
      updated: hintUpdated(hint as Hint),
      company: read === null ? company : (read.named ?? read.lister),
    };
  }
  const { content, updated, named, lister } = read;
  return { deleted: false, content, updated, company: named ?? lister };
}

/**
 * The newest proved walk of each company: when it began. Older pages and absences are dropped, and so is a
 * page of that walk itself that comes after its proof: another attempt has read the page since.
 */
export type Fences = ReadonlyMap<string, number>;

const isBehind = (fences: Fences, lister: string, began: number): boolean =>
  began < (fences.get(lister) ?? -Infinity);
const isLatePage = (fences: Fences, { lister, began }: Read): boolean =>
  began <= (fences.get(lister) ?? -Infinity);

/**
 * Whether a page need not write a record: it is unchanged, and nothing waits on its row. The row then
 * keeps the date of an older read, and the fence of the company stands for the later date.
 */
export function isSkipped(registers: Registers, read: Read, lag: Lag): boolean {
  const before = registers.reads.get(read.lister);
  const unchanged =
    before !== undefined &&
    before.content === read.content &&
    before.updated === read.updated &&
    before.named === read.named;
  return (
    unchanged &&
    registers.absence === null &&
    counting(registers) === null &&
    !isEnded(registers, before, lag)
  );
}

/** Merges a read: of the reads of one company, the later one stays. */
export function mergeRead(registers: Registers, read: Read, lag: Lag, fences: Fences = new Map()): Registers {
  if (isLatePage(fences, read)) return registers;
  const before = registers.reads.get(read.lister);
  if (before !== undefined && compare(readKey(read, lag), readKey(before, lag)) <= 0) return registers;
  const { absence } = registers;
  // What another company listed before a deletion is not remembered when the record is back.
  const others = [...registers.reads.values()].filter(
    (other) => isEnded(registers, read, lag) || !isEnded(registers, other, lag),
  );
  const reads = new Map(others.map((other) => [other.lister, other])).set(read.lister, read);
  const hint = afterRead(registers, read, lag);
  if (absence === null) return { ...registers, reads, hint };
  // Another company's read shows that the record has moved, and the own read that it is back.
  if (absence.lister !== null && absence.lister !== read.lister) {
    reads.delete(absence.lister);
    return { ...registers, reads, hint, absence: null };
  }
  return { ...registers, reads, hint, absence: isLater(absence.last, read, lag) ? absence : null };
}

/** A deletion is over once a read has ended it. */
const afterRead = (registers: Registers, read: Read, lag: Lag): Hint | null => {
  const { hint } = registers;
  const isOver = hint?.deletes === true && hint.settled === null && !isEnded(registers, read, lag);
  return isOver ? { ...hint, settled: read.began } : hint;
};

/** Merges the hint of an event. A new winner counts until it is settled. */
export function mergeHint(registers: Registers, hint: Hint): Registers {
  const before = registers.hint;
  return before !== null && compare(hintKey(hint), hintKey(before)) <= 0 ? registers : { ...registers, hint };
}

/** Settles the hint of an event as of a time. Another event's hint is not ended with it. */
export const settleHint = (registers: Registers, eventId: string, settled: number): Registers =>
  registers.hint?.eventId === eventId && registers.hint.settled === null
    ? { ...registers, hint: { ...registers.hint, settled } }
    : registers;

/**
 * Whether an absence from a listing need not be written: the row is deleted already, or a person
 * decided to keep it. The fence of the company stands for the date of the proof.
 */
export const isAbsenceSkipped = (registers: Registers, lag: Lag): boolean =>
  shown(registers, lag).deleted || registers.absence?.decision === 'kept';

/**
 * Merges the proof that a company's listing lacks the record. If another company lists the record, it
 * has moved to that company. A record that was never read belongs to no listing.
 */
export function mergeAbsence(
  registers: Registers,
  lister: string,
  began: number,
  lag: Lag,
  { fences = new Map() as Fences, decision = 'none' as Absence['decision'] } = {},
): Registers {
  const read = registers.reads.get(lister);
  if (read === undefined || isBehind(fences, lister, began)) return registers;
  if (!isLater(began, read, lag)) return registers;
  if (registers.reads.size > 1) {
    const reads = new Map(registers.reads);
    reads.delete(lister);
    return { ...registers, reads };
  }
  return { ...registers, absence: laterAbsence(registers.absence, { lister, began, decision }) };
}

/**
 * Merges the proof that the record is gone although no event deleted it: its company's proved listing
 * lacks it, and the last attempt to read it by id found nothing.
 */
export function mergeNotFound(
  registers: Registers,
  began: number,
  lag: Lag,
  fences: Fences = new Map(),
): Registers {
  const read = shownRead(registers, lag);
  if (read === null || isBehind(fences, read.lister, began) || !isLater(began, read, lag)) return registers;
  return {
    ...registers,
    absence: laterAbsence(registers.absence, { lister: null, began, decision: 'none' }),
  };
}

const laterAbsence = (
  before: Absence | null,
  { lister, began, decision }: Pick<Absence, 'lister' | 'decision'> & { readonly began: number },
): Absence => ({
  lister,
  since: Math.min(before?.since ?? began, began),
  last: Math.max(before?.last ?? began, began),
  decision,
});

/** Decides about a row that is held back. Approving makes it absent as of the proof. */
export const decide = (registers: Registers, decision: 'approve' | 'reject'): Registers =>
  registers.absence?.decision === 'held'
    ? {
        ...registers,
        absence: { ...registers.absence, decision: decision === 'approve' ? 'none' : 'kept' },
      }
    : registers;
