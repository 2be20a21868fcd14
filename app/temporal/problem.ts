import { isGrpcServiceError } from '@temporalio/client';
import { formatSeconds } from '../../contract/times.ts';
import { capitalized } from '../../contract/words.ts';
import { connectOptions, type TemporalPlace, whereIs } from './place.ts';

/** Temporal cannot be used. Its message is the same in each command, page and alarm. */
export class TemporalAway extends Error {
  /** Whether Temporal answered with a refusal, so that waiting may not help. */
  readonly refused: boolean;
  /** What is wrong, without the reason, which may differ from one attempt to the next. */
  readonly finding: string;
  readonly todo: string;
  readonly reason: string;

  constructor(place: TemporalPlace, error: unknown) {
    const said = reasonOf(error);
    const { refused = true, finding, todo } = findingOf(place, error, said);
    // Something accepts the connection, and says nothing that a client without TLS understands.
    const hint = said === 'Failed to connect' ? ': if the server requires TLS, set TEMPORAL_TLS=true' : '';
    const reason = `${said}${hint}`;
    super(`${finding}: ${reason}`, { cause: error });
    this.name = 'TemporalAway';
    this.refused = refused;
    this.finding = finding;
    this.todo = todo;
    this.reason = reason;
  }
}

const [notFound, permissionDenied, unauthenticated] = [5, 7, 16];

function findingOf(
  place: TemporalPlace,
  error: unknown,
  reason: string,
): Pick<TemporalAway, 'finding' | 'todo'> & { refused?: boolean } {
  const where = capitalized(whereIs(place));
  const code = isGrpcServiceError(error) ? error.code : undefined;
  if (code === notFound)
    return {
      finding: `${where} has no namespace ${connectOptions(place).namespace}`,
      todo: 'Correct TEMPORAL_NAMESPACE, or create the namespace.',
    };
  if (code === permissionDenied || code === unauthenticated)
    return {
      finding: `${where} refuses the credentials`,
      todo: 'Correct TEMPORAL_API_KEY or the client certificate, and TEMPORAL_NAMESPACE.',
    };
  if (/\b(SSL|TLS)\b|certificate|CERT_/i.test(reason))
    return { finding: `TLS to ${whereIs(place)} fails`, todo: 'Correct TEMPORAL_TLS and its certificates.' };
  return {
    refused: false,
    finding: `${where} does not answer`,
    todo:
      place.address === undefined
        ? 'Start Temporal, or correct TEMPORAL_ADDRESS.'
        : 'Restart metersync start, which runs the embedded Temporal, or set TEMPORAL_ADDRESS.',
  };
}

function reasonOf(error: unknown): string {
  const message = isGrpcServiceError(error)
    ? error.details
    : error instanceof Error
      ? error.message
      : String(error);
  return (
    message
      .replace(
        /^Deadline exceeded after ([\d.]+)s.*$/s,
        (_, seconds: string) => `no answer within ${formatSeconds(Number(seconds))}`,
      )
      .replace(/^No connection established\. Last error: (Error: )?/, '')
      .replace(/[.\s]*Resolution note:\s*$/, '')
      // The time of the attempt.
      .replace(/\s*\(\d{4}-\d\d-\d\dT[\d:.]+Z\)$/, '')
      .trim()
  );
}
