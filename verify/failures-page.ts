import { type FailureAction, failureTypes } from '../contract/failures.ts';
import { generatedFrom, markdownTable } from './markdown.ts';

const actions: Readonly<Record<FailureAction, string>> = {
  retry:
    'tried again by itself after growing pauses. An event is tried until it succeeds; what fails for one company or meter alone waits with the reason, 10 seconds to 15 minutes, while the others go on. A listing of a backfill is tried for an hour, a meter of it for a minute where the others can be read; then it counts as failed',
  park: 'trying again at once cannot help: somebody has to act. Events wait with the reason and are tried again after 10 seconds to 15 minutes, and at once by `metersync resume`; a refused key parks all work, one request an attempt, until the first that is answered. What a backfill could not read counts as failed, and the rest of the run goes on; `metersync resume` reads it again',
  dead: 'kept apart with its error and its exact bytes, while its neighbours go on: an event in `metersync.events`, where a redelivery or `metersync events replay` tries it again, a record in `metersync.rejected_records`',
};

/** Makes docs/failures.md: the catalogue of failures, for the operator. */
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
    'Every way in which work can fail has a code. It stands beside the reason of an event that waits or is dead (`error_code` of',
    "`metersync.events`) and of a backfill that failed (`metersync.runs`), it is the type of a failure on Temporal's web page, and `code` in the logs.",
    '`metersync status` says what is parked, since when and what to do, and counts the events that wait by their reason.',
    '',
    'What becomes of the work:',
    '',
    ...Object.entries(actions).map(([action, meaning]) => `- **${action}**: ${meaning}.`),
    '',
    markdownTable(['Code', 'Then', 'What it means', 'What to do'], rows),
    '',
    'Answers of the receiver that are not 204 are no failures of work: the sender is told the status alone, the log has the',
    'reason, once a minute for each. 401 not verified, 413 too large, 415 encoded, 405 not a POST, 503 cannot be taken now.',
    '',
  ].join('\n');
}
