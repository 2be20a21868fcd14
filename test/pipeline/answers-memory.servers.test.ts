import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { startBackfill } from '../../app/backfill.ts';
import { createDoor } from '../service/door.ts';
import { pageOf } from '../service/listing.ts';
import { type Reply, ScriptedServer } from '../service/scripted-server.ts';
import { withoutThreads } from '../support/command-process.ts';
import { createDeployment } from '../support/deployment.ts';
import { until } from '../support/poll.ts';

const megabyte = 1024 * 1024;
/** The heap that Node allows itself in a container of a gigabyte, in megabytes. */
const heap = 587;
/** The most memory that the worker may ever have, in megabytes. A container of a gigabyte has more. */
const most = 850;

const companies = Array.from({ length: 10 }, () => ({ id: randomUUID(), name: 'Company', sites: [] }));

function packed(text: string): Reply {
  return { body: gzipSync(text, { level: 1 }), headers: { 'content-encoding': 'gzip' } };
}

/** A page with one record. */
function pageWith(rest: string): () => Reply {
  return () => packed(`{"documents":[{"id":"${randomUUID()}",${rest}}],"hasNext":false}`);
}

function hostileAnswers() {
  const bomb = packed(`{"documents":["${'x'.repeat(64 * megabyte)}"]}`);
  const company = (at: number) => `{"id":"${randomUUID()}","name":"Company ${at}"}`;
  const list = packed(`{"companies":[${Array.from({ length: 400_000 }, (_, at) => company(at)).join(',')}]}`);
  const pages: readonly (() => Reply)[] = [
    () => bomb,
    () => 'endless',
    // Small objects take many times the memory of their text.
    pageWith(`"lines":[${'{"a":1},'.repeat(megabyte / 2)}{}]`),
    // One such character makes each other character take two bytes.
    pageWith(`"text":"–${'x'.repeat(8 * megabyte)}"`),
  ];
  return { list, pages };
}

/** Returns the most memory that a process has ever had, in megabytes. */
async function peakOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

test('a worker with a gigabyte of memory survives eight hostile answers at the same time, and then continues', {
  timeout: 240_000,
}, async () => {
  const { list, pages } = hostileAnswers();
  const door = createDoor();
  let hostile = true;
  let given = 0;
  const service = await ScriptedServer.start(async (asked) => {
    // The true list is needed once to find the companies. After that the list is hostile too.
    if (asked.path === '/v2.2/company') return hostile && given > 0 ? list : { json: companies };
    if (!hostile) return pageOf([], asked);
    await door.pass();
    given += 1;
    return (pages[given % pages.length] as () => Reply)();
  });
  onTestFinished(() => service.stop());
  const deployment = await createDeployment({
    env: { SERVICE_URL: service.url, SERVICE_API_KEY: 'key' },
    endpoints: { connections: null, meters: null, usageData: null, intervals: null },
  });
  onTestFinished(() => deployment.stop());
  const worker = await deployment.start('worker', {
    NODE_OPTIONS: `${withoutThreads.NODE_OPTIONS} --max-heap-size=${heap}`,
  });
  // Each company is a separate run, because one activity would read small companies one after the other.
  const readEach = async () => {
    for (const { id } of companies)
      await startBackfill(deployment.client, { db: deployment.warehouse.db, companies: [id] });
  };
  const died = worker.ended.then(({ signal, status }) => {
    throw new Error(`the worker ended: ${signal ?? status}\n${worker.stderr()}`);
  });

  await readEach();
  await Promise.race([until('eight companies are read at once', () => door.waiting >= 8), died]);
  door.open();
  await Promise.race([until('companies are read', () => given >= 10), died]);
  await readEach();
  await Promise.race([until('many are answered', () => given >= 14, { timeoutMs: 150_000 }), died]);
  hostile = false;
  // The records of the hostile pages are gone now, so not every run can be complete.
  expect(['complete', 'suspect']).toContain(await Promise.race([deployment.backfill(), died]));
  expect(await peakOf(worker.pid)).toBeLessThan(most);
});
