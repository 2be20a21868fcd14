import { canonicalId } from '../../contract/values.ts';
import type { Executor } from '../../db/connection/connect.ts';
import { warehouseNow } from '../../db/events/due.ts';
import { itemTexts } from '../../db/records/item-texts.ts';
import { idsOf, type Page } from '../../service/page.ts';
import { judgePass } from '../../service/stability.ts';
import type { Walk } from '../../service/walk.ts';

/** The listing that shows a resource: records of companies contain their sites. */
export const listingOf = <R extends string>(resource: R | 'sites'): R | 'companies' =>
  resource === 'sites' ? 'companies' : resource;

/** A page of a walk, with the warehouse's time before its request. */
export type ReadPage = Pick<Page, 'body' | 'itemsKey' | 'items' | 'ids'> & { readonly readAt: string };

export async function* dated(db: Executor, walk: Walk): AsyncGenerator<ReadPage> {
  let readAt = await warehouseNow(db);
  for await (const page of walk) {
    yield { ...page, readAt };
    readAt = await warehouseNow(db);
  }
}

/** Returns why a walk may not show what the service has, by the rules of a backfill; else undefined. */
export function doubtOf(walk: Walk): string | undefined {
  const { stable, reasons } = judgePass(walk.report().manifest);
  return stable ? undefined : reasons.join('; ');
}

export const present = (ids: readonly (string | null)[]): string[] => ids.filter((id) => id !== null);

export function siteIds(company: unknown): string[] {
  const sites = (company as { sites?: unknown } | null)?.sites;
  return Array.isArray(sites) ? present(idsOf(sites)) : [];
}

/** Reduces a page to one company, in the text that the service sent. */
export function onlyCompany(page: ReadPage, companyId: string): ReadPage {
  const texts = itemTexts(page);
  const places = [...page.ids.keys()].filter((place) => page.ids[place] === canonicalId(companyId));
  return {
    body: `[${places.map((place) => texts[place]).join(',')}]`,
    itemsKey: null,
    items: places.map((place) => page.items[place]),
    ids: places.map(() => companyId),
    readAt: page.readAt,
  };
}
