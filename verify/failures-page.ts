import { type FailureAction, failureTypes } from '../contract/failures.ts';
import { httpLimits } from '../contract/http-limits.ts';
import { attemptPolicy, triedFor } from '../contract/retry-policy.ts';
import { formatSeconds } from '../contract/times.ts';
import { generatedFrom, markdownTable } from './markdown.ts';

const actions: Readonly<Record<FailureAction, string>> = {
  retry: `tried again by itself after growing pauses. What fails for one company or meter alone waits ${triedFor.parked}, while the others go on. A listing of a backfill is tried for ${triedFor.backfill}, a meter of it ${attemptPolicy.meterTries} times where the others can be read; then it counts as failed`,
  park: `somebody has to act. Events are tried again after ${triedFor.parked}, and at once by \`metersync resume\`. A refused key parks all work until one request is answered. What a backfill could not read counts as failed; \`metersync resume\` reads it again`,
  dead: 'kept with its error and its exact bytes, while its neighbours go on: an event in `metersync.events`, a record in `metersync.rejected_records`. A redelivery or `metersync events replay` tries an event again',
};

/** Makes docs/reference/failures.md: the catalogue of failures, for the operator. */
export function failuresPage(): string {
  const rows = Object.entries(failureTypes).map(([code, failure]) => [
    `\`${code}\``,
    failure.action,
    failure.means,
    failure.operator,
  ]);
  return [
    generatedFrom('contract/failures.ts'),
    '# Failures',
    '',
    'Every failure has a code: beside the reason of an event (`error_code` of `metersync.events`) and of',
    "a run (`metersync.runs`), as the type of a failure on Temporal's web page, and as `code` in the logs.",
    '`metersync status` says what is parked and what to do.',
    '',
    'What becomes of the work:',
    '',
    ...Object.entries(actions).map(([action, meaning]) => `- **${action}**: ${meaning}.`),
    '',
    markdownTable(['Code', 'Then', 'What it means', 'What to do'], rows),
    '',
    `A sender gets the status alone; the log has the reason, once in ${formatSeconds(httpLimits.logIntervalMs / 1000)} for each.`,
    '401 not verified, 413 too large, 415 encoded, 405 not a POST, 503 cannot be taken now.',
    '',
  ].join('\n');
}
