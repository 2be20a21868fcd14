import { type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { excludedOf } from '../connection/arrays.ts';
import {
  companyNamed,
  isListedByCompany,
  type RecordResource,
  resources,
  row,
  updatedOf,
} from '../resources.ts';
import { alsoListed, deletes } from '../schema/reads.ts';
import { companies, documents } from '../schema/utility.ts';

/**
 * Several companies may list one record, and each of them may show another state of it. A row shows
 * what one of them lists, its lister. That is the owner of the row, or the company in `listed_by` if
 * the record names another owner. What the other companies list is in `metersync.also_listed`, and
 * takes the place of the row's record once the lister no longer lists it. So every row is the same
 * in whatever order listings are read, and reading them again writes nothing. Sites are not listed:
 * they are in the records of companies.
 */

/** The lister of a row, or of a record to write, with the given alias. */
export const listerOf = (held: SQL): SQL => sql`coalesce(${held}.listed_by, ${held}.company_id)`;

const ofRow = sql`${row}`;

/** The company by whose listing a row of any resource is judged. */
export const judgedBy = (resource: RecordResource): SQL =>
  isListedByCompany(resource) ? listerOf(ofRow) : sql`${row.companyId}`;

/** Whether a company is the lister of a `row`. An index serves each of the two cases. */
export const isListedBy = (companyId: SQL): SQL =>
  sql`(
          ${row.companyId} = ${companyId} and ${ofRow}.listed_by is null
          or ${ofRow}.listed_by = ${companyId}
        )`;

/** Whether a company is the lister of a `row`, and no other company is known to list its record. */
export const isListedOnlyBy = (resource: RecordResource, companyId: string): SQL =>
  sql`${isListedBy(sql`${companyId}::uuid`)}
      and not exists (select from ${alsoListing(resource)} other)`;

/** Whether the record of a row says who owns it. The owner of usage is the company of its document. */
const saysOwner = (resource: RecordResource, held: SQL): SQL => {
  const named = sql`${companyNamed(sql`${held}.raw`)} is not null`;
  return resource === 'usageData' ? sql`(${held}.document_id is not null or ${named})` : named;
};

/**
 * The owner of a row that a read by id writes. If the record does not say its owner, a row that a
 * listing showed keeps its owner.
 */
export const ownerReadById = (resource: RecordResource): SQL => sql`case
        when held.raw is not null
          and held.synced_at is not null
          and held.deleted_at is null
          and not ${saysOwner(resource, sql`excluded`)}
        then held.company_id
        else excluded.company_id
      end`;

/**
 * Whether a record takes the place of the record of its row as a later read does: both are from the
 * listing of one company, no listing has shown the row, or usage has moved to another document.
 */
export const showsSame = (resource: RecordResource): SQL => {
  const hasMoved =
    resource === 'usageData' ? sql` or excluded.document_id <> held.document_id` : sql``;
  return sql`coalesce(${listerOf(sql`held`)} = ${listerOf(sql`excluded`)}, true)${hasMoved}`;
};

/** The order of the listers of one record at the same `updated`: first those that own it. */
const rankOf = (resource: RecordResource, held: SQL): SQL => sql`(
          case
            when ${held}.listed_by is not null then 2
            when ${saysOwner(resource, held)} then 0
            else 1
          end,
          ${listerOf(held)}
        )`;

/** Whether a record has a later `updated` than another one, or else comes `first` by its lister. */
const laterOr = (first: SQL, incoming: SQL, before: SQL): SQL => sql`case
          when ${incoming} <> ${before} then ${incoming} > ${before}
          else ${first}
        end`;

/**
 * Whether a row shows what the company of the record `excluded` lists rather than what the lister
 * of the row `held` does: the later `updated`, then the record of the company that it names, then
 * that of the company with the smaller id. A row that is held back yields to any other company.
 */
export function isPreferred(resource: RecordResource): SQL {
  const { updated, rawUpdated = updated } = resources[resource].table;
  const first = sql`${rankOf(resource, sql`excluded`)} < ${rankOf(resource, sql`held`)}`;
  const isHeld = isHeldBack(resource, sql`held`);
  if (rawUpdated === undefined) return sql`(${isHeld} or ${first})`;
  const [incoming, before] = [excludedOf(rawUpdated), sql`held.${sql.identifier(rawUpdated.name)}`];
  return sql`(${isHeld} or ${laterOr(first, incoming, before)})`;
}

/** Whether an entry `other` is preferred to the record of its `row`, by the same order. */
export function isEntryPreferred(resource: RecordResource): SQL {
  const { updated, rawUpdated = updated } = resources[resource].table;
  const named = companyNamed(sql`other.raw`);
  const first = sql`(
          case
            when ${named} <> other.company_id then 2
            when ${named} is not null then 0
            else 1
          end,
          other.company_id
        ) < ${rankOf(resource, ofRow)}`;
  if (rawUpdated === undefined) return first;
  const [incoming, before] = [
    updatedOf('other.raw'),
    sql`${ofRow}.${sql.identifier(rawUpdated.name)}`,
  ];
  return laterOr(first, incoming, before);
}

/** Whether the listing of the lister lacks the record of a row, which waits for a decision. */
export const isHeldBack = (resource: RecordResource, held: SQL): SQL => sql`exists (
          select from ${deletes}
          where ${deletes.resource} = ${sql.raw(`'${resource}'`)}
            and ${deletes.recordId} = ${held}.id::text
            and ${deletes.companyId} = ${listerOf(held)}
            and ${deletes.state} = 'quarantined'
        )`;

/** Whether a row with this id is held back for a decision, or kept by one. */
export const isInDoubt = (resource: RecordResource, id: SQLWrapper): SQL => sql`exists (
      select from ${deletes}
      where ${deletes.resource} = ${resource}
        and ${deletes.recordId} = ${id}::text
        and ${deletes.state} in ('quarantined', 'rejected', 'undone')
      offset 0
    )`;

/**
 * Whether the row `held` of a site shows what the company of `excluded` has, in the records of both.
 * The company with the smaller id keeps the site.
 */
export const takesSite = (id: SQL, held: SQL, owner: SQL): SQL => sql`not (
        ${held} < ${owner}
        and exists (
          select from ${companies}
            cross join jsonb_array_elements(metersync.elements(raw -> 'sites')) as site
          where ${companies.id} = ${held}
            and deleted_at is null
            and metersync.uuid_of(site ->> 'id') = ${id}
        )
      )`;

/**
 * The owner of a record `r` that the company `owner` lists, if it is the lister of the `row`. The
 * owner of usage is the company that the record of its document names, because the row of the
 * document may be wrong, too. That record is only parsed if the document is not the lister's.
 */
export const ownerOf = (resource: RecordResource): SQL => {
  if (resource === 'sites') return sql`owner`;
  const ofDocument = sql`(
      select case
          when d.company_id = owner then owner
          else coalesce(${companyNamed(sql`d.raw`)}, d.company_id)
        end
      from ${documents} d
      where d.id = ${row}.document_id
    ), `;
  return sql`coalesce(
      ${resource === 'usageData' ? ofDocument : sql``}${companyNamed(sql`r`)},
      owner
    )`;
};

/** The entry of a company about the record of a `row` that another company lists, as a table. */
export const entryOf = (resource: RecordResource, companyId: SQL): SQL => sql`(
          select other.*
          from ${alsoListed} other
          where other.resource = ${resource}
            and other.record_id = ${row.id}::text
            and other.company_id = ${companyId}
        )`;

/** What living companies list of a `row` that are not its lister, as a table. */
export const alsoListing = (resource: RecordResource): SQL => sql`(
          select other.*
          from ${alsoListed} other
          where other.resource = ${resource}
            and other.record_id = ${row.id}::text
            and other.company_id <> ${listerOf(ofRow)}
            and exists (
              select from ${companies} c
              where c.id = other.company_id and c.deleted_at is null
              offset 0
            )
        )`;
