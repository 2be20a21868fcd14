import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { columnNames } from '../connection/arrays.ts';
import { intervals } from '../schema/utility.ts';
import { columnsCopied } from './interval-key.ts';
import { type Readings, type ReadingsPage, unpacked } from './listed-readings.ts';

const copyStatement = new PgDialect().sqlToQuery(
  sql`copy ${intervals} (${columnNames(columnsCopied)}) from stdin`,
).sql;

/** Copies pages of new readings of a meter, of which no two start at the same time and all values could be read. */
export async function copyReadings(
  client: pg.PoolClient,
  { meterId, readAt, pages }: { meterId: string; readAt: string; pages: readonly ReadingsPage[] },
): Promise<void> {
  const texts = function* () {
    for (const page of pages) yield copyText(meterId, readAt, unpacked(page));
  };
  await pipeline(Readable.from(texts()), client.query(copyFrom(copyStatement)));
}

function copyText(meterId: string, readAt: string, readings: Readings): string {
  const { startAt, seconds, usage, usageUnits, quality, updated } = readings;
  const meter = escapeCopy(meterId);
  let text = '';
  for (let at = 0; at < startAt.length; at++) {
    text += `${meter}\t${startAt[at]}\t${seconds[at]}\t${escapeCopy(usageUnits[at] ?? '')}\t${copyValue(usage[at])}\t`;
    text += `${copyValue(quality[at])}\t${copyValue(updated[at])}\t${readAt}\n`;
  }
  return text;
}

const copyValue = (value: string | null | undefined): string =>
  value == null ? '\\N' : escapeCopy(value);

const special = /[\\\t\n\r]/;
const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
};

function escapeCopy(text: string): string {
  return special.test(text) ? text.replace(/[\\\t\n\r]/g, (c) => escapes[c] ?? c) : text;
}
