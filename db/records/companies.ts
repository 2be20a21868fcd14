import { type SQL, sql } from 'drizzle-orm';
import { resources } from '../resources.ts';
import { companies } from '../schema/utility.ts';
import { countWritten, items, type UpsertPage } from './page.ts';
import { upsertRecords } from './upsert.ts';

/** Writes companies; with `existingOnly`, only companies that have a row. */
export const upsertCompanies: UpsertPage = (tx, page, closing) => {
  const from = page.existingOnly ? sql`item where ${hasRow(sql`item.r`)}` : sql`item`;
  const companies = upsertRecords(resources.companies, { items: items(page), page, from });
  return countWritten(tx, sql`${companies}, ${closing}`);
};

/**
 * Writes the sites that company records embed, after the companies. Sites of a
 * company without a row are left out: its record was refused, and no run would tombstone them.
 */
export const upsertCompanySites: UpsertPage = (tx, page, closing) => {
  const from = sql`site where ${hasRow(sql`site.company`)}`;
  const embedded = sql`${items(page)}, ${sitesOfCompanies}`;
  const sites = upsertRecords(resources.sites, { items: embedded, page, from });
  return countWritten(tx, sql`${sites}, ${closing}`);
};

/** The sites embedded in companies `item`, as a step `site (r, place, owner, digest, company)`. */
export const sitesOfCompanies = sql`site as (
    select
      s.r,
      item.place,
      (item.r ->> 'id')::uuid as owner,
      null::bytea as digest,
      item.r as company
    from item
      cross join lateral jsonb_array_elements(metersync.elements(item.r -> 'sites')) as s (r)
    where item.r ->> 'id' is not null
      and metersync.uuid_of(s.r ->> 'id') is not null
  )`;

const hasRow = (company: SQL): SQL => sql`exists (
      select from ${companies} existing
      where existing.id = (${company} ->> 'id')::uuid
      offset 0
    )`;
