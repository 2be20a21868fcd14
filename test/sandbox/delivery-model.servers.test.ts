import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cases } from '../support/cases.ts';
import { forFile } from '../support/for-file.ts';
import { until } from '../support/poll.ts';
import { answerWith, type Receiver, startReceiver } from './support/receiver.ts';
import { type AnyRecord, companiesOf, recordsOf, type Service, startService } from './support/service.ts';

/**
 * Compares dispatch, endpoint states and the retry schedule with a small model, on the virtual clock. The
 * model knows service.md 3.1, 3.2, 6.1.1 and 6.4, and nothing about Postgres, lanes or claims.
 */
const delays = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
const fiveDays = 5 * 86_400;

interface ModelDelivery {
  attempts: number;
  state: 'waiting' | 'delivered' | 'failed' | 'cancelled';
  due: number;
}

interface Model {
  now: number;
  enabled: boolean;
  answers: boolean;
  endpoint: 'active' | 'disabled';
  failingSince: number | undefined;
  deliveries: ModelDelivery[];
}

interface Real {
  readonly service: Service;
  readonly receiver: Receiver;
  readonly endpointId: string;
  readonly meterId: string;
}

/** Lets the model make all due attempts. */
function attemptDue(model: Model): void {
  for (const delivery of model.deliveries) {
    while (model.endpoint === 'active' && delivery.state === 'waiting' && delivery.due <= model.now) {
      delivery.attempts++;
      if (model.answers) {
        delivery.state = 'delivered';
        model.failingSince = undefined;
        continue;
      }
      model.failingSince ??= model.now;
      const delay = delays[delivery.attempts];
      if (delay === undefined) delivery.state = 'failed';
      else delivery.due = model.now + delay;
      if (model.now - model.failingSince >= fiveDays) leaveActive(model);
    }
  }
}

function leaveActive(model: Model): void {
  model.endpoint = 'disabled';
  model.failingSince = undefined;
  for (const delivery of model.deliveries) if (delivery.state === 'waiting') delivery.state = 'cancelled';
}

async function deliveriesOf({ service, endpointId }: Real): Promise<AnyRecord[]> {
  const path = `/sandbox/deliveries?limit=10000&endpointId=${endpointId}`;
  return (await service.control<{ deliveries: AnyRecord[] }>('GET', path)).deliveries;
}

/** Waits until the service agrees with the model. */
async function agree(model: Model, real: Real): Promise<void> {
  const expected = model.deliveries.map(({ state, attempts }) => `${state} ${attempts}`).sort();
  let seen: string[] = [];
  await until(
    'the service agrees with the model',
    async () => {
      const found = await deliveriesOf(real);
      seen = found.map(({ state, attempts }) => `${state} ${attempts}`).sort();
      return seen.join() === expected.join();
    },
    { timeoutMs: 60_000, everyMs: 5 },
  ).catch(() => expect(seen).toEqual(expected));
  const { endpoints } = await real.service.control<AnyRecord>('GET', '/sandbox/endpoints');
  expect(endpoints.find(({ id }: AnyRecord) => id === real.endpointId).state).toBe(model.endpoint);
}

type Command = fc.AsyncCommand<Model, Real>;

const command = (
  name: string,
  check: (model: Model) => boolean,
  step: (model: Model) => void,
  act: (real: Real) => Promise<unknown> | unknown,
): Command => ({
  check,
  async run(model, real) {
    step(model);
    await act(real);
    attemptDue(model);
    await agree(model, real);
  },
  toString: () => name,
});

const advance = (seconds: number): Command =>
  command(
    `advance ${seconds} s`,
    () => true,
    (model) => {
      model.now += seconds;
    },
    ({ service }) => service.control('POST', '/sandbox/clock', { advanceSeconds: seconds }),
  );

const bill = (): Command =>
  command(
    'a bill arrives',
    () => true,
    (model) => {
      if (!model.enabled || model.endpoint !== 'active') return;
      model.deliveries.push({ attempts: 0, state: 'waiting', due: model.now });
    },
    ({ service, meterId }) => service.change({ type: 'createDocument', meterId }),
  );

const answering = (answers: boolean): Command =>
  command(
    answers ? 'the receiver recovers' : 'the receiver breaks',
    (model) => model.answers !== answers,
    (model) => {
      model.answers = answers;
    },
    ({ receiver }) => {
      receiver.answer = answerWith(answers ? 200 : 500);
    },
  );

const webhooks = (enabled: boolean): Command =>
  command(
    enabled ? 'webhooks on' : 'webhooks off',
    () => true,
    (model) => {
      model.enabled = enabled;
    },
    ({ service }) => service.enableWebhooks(enabled),
  );

const endpointState = (state: 'active' | 'disabled'): Command =>
  command(
    state === 'active' ? 'Enable Endpoint' : 'disable endpoint',
    (model) => model.endpoint !== state,
    (model) => {
      if (state === 'active') model.endpoint = 'active';
      else leaveActive(model);
    },
    ({ service, endpointId }) => service.control('POST', `/sandbox/endpoints/${endpointId}/state`, { state }),
  );

let meterId: string;
// Real time stands still, so that the service's clock moves only with the clock of the model.
const standing = BigInt(Date.now()) * 1000n;
const service = await forFile(
  startService({ companies: 1, documents: 1, intervalDays: 0, now: () => standing }),
);
const receiver = await forFile(startReceiver());
const [company] = (await companiesOf(service)) as [AnyRecord];
[{ id: meterId }] = (await recordsOf(service, 'meter', company.id, 'meters')) as [AnyRecord];

test('service.md 3.1, 3.2, 6.1.1, 6.4: deliveries and endpoint states follow the model in any order of commands', async () => {
  const commands = [
    fc.constantFrom(1, 6, 301, 1_801, 7_201, 18_001, 36_001, 86_400, 172_800).map(advance),
    fc.constant(bill()),
    fc.constant(bill()),
    fc.boolean().map(answering),
    fc.boolean().map(webhooks),
    fc.constantFrom('active' as const, 'disabled' as const).map(endpointState),
  ];
  await fc.assert(
    fc.asyncProperty(fc.commands(commands, { maxCommands: 40, size: 'max' }), async (sequence) => {
      receiver.answer = answerWith(200);
      await service.enableWebhooks();
      const { id } = await service.control<{ id: string }>('POST', '/sandbox/endpoints', {
        url: receiver.url,
      });
      const model: Model = {
        now: 0,
        enabled: true,
        answers: true,
        endpoint: 'active',
        failingSince: undefined,
        deliveries: [],
      };
      try {
        await fc.asyncModelRun(
          () => ({ model, real: { service, receiver, endpointId: id, meterId } }),
          sequence,
        );
      } finally {
        await service.control('DELETE', `/sandbox/endpoints/${id}`);
      }
    }),
    { numRuns: cases(5, 12), endOnFailure: true },
  );
});
