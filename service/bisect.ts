/** A page of a listing as a search sees it: the ids on it, and by id what the listing may be ordered by. */
export interface ProbedPage {
  readonly number: number;
  readonly ids: readonly string[];
  /** Of each id, in order: texts that compare as their values do; null where a record has none. */
  readonly keys: readonly (string | null)[];
}

export interface WantedRecord {
  readonly id: string;
  readonly key: string | null;
}

type Direction = 'ascending' | 'descending';

/**
 * Searches an ordered listing for records between its first and its last page, which the caller has read. The order is
 * learnt from those two; each record is looked for by bisection over its key, equal keys on neighbouring pages
 * included; no page is read twice. Whatever contradicts the order ends the search.
 * @param read a page by its number; undefined when the service answered with another one
 * @returns ids that were not met: they may still be somewhere
 */
export async function bisectListing(
  wanted: readonly WantedRecord[],
  first: ProbedPage,
  last: ProbedPage,
  read: (number: number) => Promise<ProbedPage | undefined>,
): Promise<string[]> {
  const unmet = new Set(wanted.map(({ id }) => id));
  const probes = new Map<number, ProbedPage>();
  const meet = (page: ProbedPage): ProbedPage => {
    probes.set(page.number, page);
    for (const id of page.ids) unmet.delete(id);
    return page;
  };
  meet(first);
  meet(last);
  const direction = directionOf(first, last);
  if (direction === undefined) return [...unmet];

  const probe = async (number: number): Promise<ProbedPage> => {
    const known = probes.get(number);
    if (known !== undefined) return known;
    const page = await read(number);
    if (page === undefined || !isOrdered(page.keys, direction)) throw new Disorder();
    return meet(page);
  };
  /** Goes on to the next page as long as the one before ends with the key that is looked for. */
  const alongTies = async (from: ProbedPage, step: 1 | -1, { id, key }: WantedRecord): Promise<void> => {
    let page = from;
    while (unmet.has(id) && page.keys.at(step === 1 ? -1 : 0) === key) {
      const next = page.number + step;
      if (next <= first.number || next >= last.number) return;
      page = await probe(next);
    }
  };
  const find = async (record: WantedRecord): Promise<void> => {
    const { id, key } = record;
    if (key === null) return;
    let [low, high] = [first.number, last.number];
    while (unmet.has(id) && high - low > 1) {
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
    for (const record of wanted) if (unmet.has(record.id)) await find(record);
  } catch (error) {
    if (!(error instanceof Disorder)) throw error;
  }
  return [...unmet];
}

/** The listing is not in the order that its first and last page promised, or moved meanwhile. */
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

/** Where a key stands, seen from a page. An empty page tells nothing of what follows it. */
function placeOf(key: string, page: ProbedPage, direction: Direction): 'before' | 'after' | 'within' {
  const [head, tail] = [page.keys[0] ?? null, page.keys.at(-1) ?? null];
  if (head === null || tail === null) throw new Disorder();
  if (direction === 'ascending' ? key < head : key > head) return 'before';
  return (direction === 'ascending' ? key > tail : key < tail) ? 'after' : 'within';
}
