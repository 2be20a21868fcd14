import { withClient } from '../../app/temporal/temporal.ts';
import type { FailureCode } from '../../contract/failures.ts';
import { recorded } from '../../operations/recorded.ts';
import { describeResumed, resumeParked } from '../../operations/resume.ts';
import { asOperation } from '../as-operation.ts';
import { print, printJson } from '../print.ts';
import { withWarehouse } from '../warehouse.ts';

/** `metersync resume`: tries parked work again at once, because its cause is gone. */
export async function resume(options: { code?: FailureCode; json?: boolean }): Promise<void> {
  await withWarehouse({ temporal: true }, async ({ db, context }) => {
    const report = await withClient(context.stack.temporal, (client) =>
      recorded(
        db,
        asOperation(context.settings, 'resume', { code: options.code }),
        () => resumeParked({ client, db, code: options.code }),
        (resumed) => describeResumed(resumed).join('; '),
      ),
    );
    if (options.json) printJson(report);
    else print(...describeResumed(report));
  });
}
