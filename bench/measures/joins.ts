import { joinsOfViews, statementOf } from '../load/joins.ts';
import type { Bench, Figures, Measure } from '../measure.ts';
import { median, msOf } from '../measure.ts';
import { withClient } from '../stack.ts';
import { fillMonths } from './analytics.ts';

export const joins: Measure = {
  name: 'joins',
  about: 'each pair and triple of views for analysts that have a key in common: of all companies, and of one',
  onlyByName: true,
  run: measureJoins,
};

/** A join that takes longer is stopped, because it computes a view again for each row of another view. */
const mostMs = 120_000;

async function measureJoins(bench: Bench): Promise<Figures> {
  const { size, stack, say } = bench;
  const url = await stack.warehouse();
  return await withClient(url, async (client) => {
    await client.query('set jit = off; set max_parallel_workers_per_gather = 0');
    await fillMonths(bench, url, client, size.analyticsCompanies);
    const {
      rows: [{ id }],
    } = await client.query(`select id from utility.companies where name = 'Company 1'`);
    const all = await joinsOfViews(client);
    say(`${all.length} joins`);
    await client.query(`set statement_timeout = ${mostMs}`);
    const seconds: number[] = [];
    const ofOne: number[] = [];
    for (const join of all) {
      const one = await msOf(() => client.query(statementOf(join, id)));
      const every = await msOf(() => client.query(statementOf(join)));
      say(`${join.views.join(', ')}: ${Math.round(one)} ms of one company, ${Math.round(every)} ms of all`);
      ofOne.push(one);
      seconds.push(every / 1000);
    }
    return {
      joins: all.length,
      slowestSeconds: Math.max(...seconds),
      medianSeconds: median(seconds),
      slowestOfOneMs: Math.max(...ofOne),
      medianOfOneMs: median(ofOne),
    };
  });
}
