import { companyOfMeter, dueRanges, nextPiece, settleRanges } from '../../../../db/events/ranges.ts';
import { forgetReads, lockReadings, noteRead } from '../../../../db/readings/ranges.ts';
import { approveReadings, reviveReadings } from '../../../../db/readings/removed.ts';
import type { IntervalColumns } from '../../../../db/readings/texts.ts';
import { clearRejectedReadings } from '../../../../db/records/rejected.ts';
import { began, writeReadings } from '../../../support/readings.ts';
import { idOf, meterOf } from '../rows.ts';
import { numbers, readAt, type Work } from './work.ts';

const start = '2025-01-01T00:00:00Z';
const end = '2025-02-01T00:00:00Z';

/** A read of January that was proved, so that it removes what it lacks. */
const proved = { range: { start, end }, proof: 'proved', cap: null } as const;

/** Sixty hourly readings of January. */
function readings(usage: string): IntervalColumns {
  const at = (hour: number): string => new Date(Date.UTC(2025, 0, 1, hour)).toISOString().replace('.000', '');
  const hours = numbers(0, 59);
  const all = <T>(value: T): T[] => hours.map(() => value);
  return {
    startAt: hours.map(at),
    endAt: hours.map((hour) => at(hour + 1)),
    granularitySeconds: all(3600),
    usage: all(usage),
    usageUnits: all('kWh'),
    quality: all('MEASURED'),
    updated: all(null),
    id: all(null),
  };
}

export const readingWork: readonly Work[] = [
  {
    name: '60 readings of a meter without readings',
    rows: 60,
    run: (warehouse, plot) =>
      writeReadings(warehouse, `new ${meterOf(plot, 1)}`, began(1), readings('1'), proved),
  },
  {
    name: '60 readings, some of them existing',
    rows: 60,
    run: (warehouse, plot) => writeReadings(warehouse, meterOf(plot, 1), began(1), readings('7'), proved),
  },
  {
    name: '60 readings, with a duplicate and a wrong amount',
    rows: 60,
    run: (warehouse, plot) => {
      const all = readings('8');
      const startAt = all.startAt.map((at, place) => (place === 1 ? (all.startAt[0] ?? '') : at));
      const usage = all.usage.map((one, place) => (place === 59 ? 'much' : one));
      return writeReadings(warehouse, meterOf(plot, 1), began(1), { ...all, startAt, usage }, proved);
    },
  },
  {
    name: '60 readings with times in another format',
    rows: 60,
    run: (warehouse, plot) => {
      const all = readings('9');
      const spaced = (time: string): string => time.replace('T', ' ');
      const times = { startAt: all.startAt.map(spaced), endAt: all.endAt.map((at) => spaced(at ?? '')) };
      return writeReadings(warehouse, meterOf(plot, 1), began(1), { ...all, ...times }, proved);
    },
  },
  {
    name: 'ranges of a meter are fetched, noted and settled',
    rows: 60,
    run: async ({ db }, plot) => {
      const meterId = meterOf(plot, 2);
      const { granularity } = await dueRanges(db, meterId, 50);
      await nextPiece(
        db,
        { start, end, seconds: Number.POSITIVE_INFINITY },
        { from: start, width: 1 },
        granularity,
        20_000,
      );
      await lockReadings(db, meterId, readAt);
      await noteRead(db, { meterId, range: { start, end } }, readAt);
      await clearRejectedReadings(db, { meterId, start, end }, readAt);
      await companyOfMeter(db, meterId);
      await companyOfMeter(db, `new ${meterId}`);
      await settleRanges(db, meterId, readAt, [{ start, end }]);
    },
  },
  {
    name: 'all readings of a meter were read, which is noted',
    rows: 60,
    run: async ({ db }, plot) => {
      const meterId = meterOf(plot, 2);
      await noteRead(db, { meterId, range: {} }, readAt);
      await clearRejectedReadings(db, { meterId }, readAt);
    },
  },
  {
    name: 'readings that the service no longer has are removed',
    rows: 100,
    run: async (warehouse, plot) => {
      const runId = idOf('run', plot, 2_000);
      const how = { range: {}, proof: 'proved', cap: null, runId } as const;
      await writeReadings(warehouse, meterOf(plot, 1), began(1), readings('1'), how);
      await warehouse.db.transaction(async (tx) => {
        await reviveReadings(tx, runId);
        await approveReadings(tx, runId);
      });
    },
  },
  {
    name: 'reads of readings that are not remembered any more are deleted',
    rows: 100,
    asksForAll: 'It is about all meters.',
    run: ({ db }) => forgetReads(db, 100),
  },
];
