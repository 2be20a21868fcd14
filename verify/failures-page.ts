import { type FailureAction, failureTypes } from '../contract/failures.ts';
import { attemptPolicy, triedFor } from '../contract/retry-policy.ts';
import { formatSeconds } from '../contract/times.ts';
import { httpLimits } from '../receiver/http-limits.ts';
import { generatedFrom } from './markdown.ts';

const actions: Readonly<Record<FailureAction, string>> = {
  retry: `metersync tries again by itself. If only one company or meter fails, metersync waits ${triedFor.parked} before the next attempt. In a backfill, a listing counts as failed after ${triedFor.backfill}, and a meter after ${attemptPolicy.meterTries} attempts`,
  park: `somebody has to act. Events are tried again after ${triedFor.parked}. \`metersync resume\` tries them at once, and also reads what a backfill could not read`,
  dead: 'the event or record is kept with its error and bytes, in `metersync.events` or `metersync.rejected_records`. `metersync events replay` tries events again',
};

/** Makes docs/reference/failures.md: the catalogue of failures, for the operator. */
export function failuresPage(): string {
  const lines = Object.entries(failureTypes).map(
    ([code, { action, means, operator }]) => `- \`${code}\` (${action}): ${means} **Do:** ${operator}`,
  );
  return [
    generatedFrom('contract/failures.ts'),
    '# Failures',
    '',
    "Every failure has a code, which is shown in `metersync.events` and `metersync.runs`, on Temporal's web page, and as",
    '`code` in the logs. `metersync status` says what is parked and what to do.',
    '',
    ...Object.entries(actions).map(([action, meaning]) => `- **${action}**: ${meaning}.`),
    '',
    ...lines,
    '',
    `The receiver only tells senders a status. It logs each reason at most once in ${formatSeconds(httpLimits.logIntervalMs / 1000)}:`,
    '401 for a delivery that is not verified, 413 if it is too large, 415 if it is encoded, 405 if it is not a',
    'POST, and 503 if it cannot be accepted now.',
    '',
  ].join('\n');
}
