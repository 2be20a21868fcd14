/** A page of a listing for a search: its ids, and the key of each by which the listing may be ordered. */
export interface ProbedPage {
  readonly number: number;
  readonly ids: readonly string[];
  /** The keys of the ids, in order: texts that sort like their values; null for a record without a key. */
  readonly keys: readonly (string | null)[];
}

export interface WantedRecord {
  readonly id: string;
  readonly key: string | null;
}

type Direction = 'ascending' | 'descending';

/**
 * Searches an ordered listing for records between its first and its last page, which the caller has read.
 * Infers the order from these two pages. Bisects for each record by its key, and searches neighbouring pages
 * with equal keys. Reads no page twice. Stops at any page that contradicts the order.
 * @param read a page by its number; undefined if the service answered with another page
 * @returns ids that were not found: they may still be in the listing
 */
export async function bisectListing(
  wanted: readonly WantedRecord[],
  first: ProbedPage,
  last: ProbedPage,
  read: (number: number) => Promise<ProbedPage | undefined>,
): Promise<string[]> {
  const missing = new Set(wanted.map(({ id }) => id));
  const probes = new Map<number, ProbedPage>();
  const note = (page: ProbedPage): ProbedPage => {
    probes.set(page.number, page);
    for (const id of page.ids) missing.delete(id);
    return page;
  };
  note(first);
  note(last);
  const direction = directionOf(first, last);
  if (direction === undefined) return [...missing];

  const probe = async (number: number): Promise<ProbedPage> => {
    const probed = probes.get(number);
    if (probed !== undefined) return probed;
    const page = await read(number);
    if (page === undefined || !isOrdered(page.keys, direction)) throw new Disorder();
    return note(page);
  };
  /** Reads further pages as long as the page before ends with the wanted key. */
  const alongTies = async (from: ProbedPage, step: 1 | -1, { id, key }: WantedRecord): Promise<void> => {
    let page = from;
    while (missing.has(id) && page.keys.at(step === 1 ? -1 : 0) === key) {
      const next = page.number + step;
      if (next <= first.number || next >= last.number) return;
      page = await probe(next);
    }
  };
  const find = async (record: WantedRecord): Promise<void> => {
    const { id, key } = record;
    if (key === null) return;
    let [low, high] = [first.number, last.number];
    while (missing.has(id) && high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      const page = await probe(middle);
      const place = placeOf(key, page, direction);
      if (place === 'before') high = middle;
      else if (place === 'after') low = middle;
      else {
        await alongTies(page, -1, record);
        await alongTies(page, 1, record);
        return;
      }
    }
  };
  try {
    for (const record of wanted) if (missing.has(record.id)) await find(record);
  } catch (error) {
    if (!(error instanceof Disorder)) throw error;
  }
  return [...missing];
}

/** The listing is not in the order of its first and last page, or changed meanwhile. */
class Disorder extends Error {}

function directionOf(first: ProbedPage, last: ProbedPage): Direction | undefined {
  const keys = [...first.keys, ...last.keys];
  if (keys.length === 0 || keys[0] === keys.at(-1)) return undefined;
  return (['ascending', 'descending'] as const).find((direction) => isOrdered(keys, direction));
}

function isOrdered(keys: readonly (string | null)[], direction: Direction): boolean {
  return keys.every((key, at) => {
    if (key === null) return false;
    const before = at === 0 ? key : (keys[at - 1] as string);
    return direction === 'ascending' ? before <= key : before >= key;
  });
}

/** Returns where a key is, relative to a page. An empty page cannot say. */
function placeOf(key: string, page: ProbedPage, direction: Direction): 'before' | 'after' | 'within' {
  const [head, tail] = [page.keys[0] ?? null, page.keys.at(-1) ?? null];
  if (head === null || tail === null) throw new Disorder();
  if (direction === 'ascending' ? key < head : key > head) return 'before';
  return (direction === 'ascending' ? key > tail : key < tail) ? 'after' : 'within';
}
