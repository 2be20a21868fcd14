import { type FailureAction, failureTypes } from '../contract/failures.ts';
import { attemptPolicy, triedFor } from '../contract/retry-policy.ts';
import { formatSeconds } from '../contract/times.ts';
import { httpLimits } from '../receiver/http-limits.ts';
import { generatedFrom } from './markdown.ts';

const actions: Readonly<Record<FailureAction, string>> = {
  retry: `tried again by itself. One company or meter that fails alone waits ${triedFor.parked}. A backfill tries a listing for ${triedFor.backfill}, a meter ${attemptPolicy.meterTries} times; then it counts as failed`,
  park: `somebody has to act. Events are tried again after ${triedFor.parked}, and at once by \`metersync resume\`, which also reads what a backfill could not`,
  dead: 'kept with its error and bytes, in `metersync.events` or `metersync.rejected_records`. `metersync events replay` tries events again',
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
    "Every failure has a code: in `metersync.events` and `metersync.runs`, on Temporal's web page, and as",
    '`code` in the logs. `metersync status` says what is parked and what to do.',
    '',
    ...Object.entries(actions).map(([action, meaning]) => `- **${action}**: ${meaning}.`),
    '',
    ...lines,
    '',
    `Senders get the status alone; the log has each reason once in ${formatSeconds(httpLimits.logIntervalMs / 1000)}:`,
    '401 not verified, 413 too large, 415 encoded, 405 not a POST, 503 not now.',
    '',
  ].join('\n');
}
