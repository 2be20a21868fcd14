import { isGrpcServiceError } from '@temporalio/client';

export interface TemporalProblem {
  /** Whether Temporal answered with a refusal, so that waiting may not help. */
  readonly refused: boolean;
  /** What is wrong and what to do. Each attempt with the same finding gives the same text. */
  readonly words: string;
  readonly reason: string;
}

const [notFound, permissionDenied, unauthenticated] = [5, 7, 16];

export function temporalProblem(error: unknown, where: string, namespace: string): TemporalProblem {
  const reason = reasonOf(error);
  const refusal = (words: string): TemporalProblem => ({ refused: true, words, reason });
  const code = isGrpcServiceError(error) ? error.code : undefined;
  if (code === notFound) {
    return refusal(
      `${where} has no namespace ${namespace}: correct TEMPORAL_NAMESPACE, or create the namespace`,
    );
  }
  if (code === permissionDenied || code === unauthenticated) {
    return refusal(
      `${where} refuses the credentials: correct TEMPORAL_API_KEY or the client certificate, and TEMPORAL_NAMESPACE`,
    );
  }
  if (/\b(SSL|TLS)\b|certificate|CERT_/i.test(reason)) {
    return refusal(`TLS to ${where} fails: correct TEMPORAL_TLS and its certificates`);
  }
  return {
    refused: false,
    words: `${where} is away`,
    // Something accepts the connection, and says nothing that a client without TLS understands.
    reason:
      reason === 'Failed to connect'
        ? `${reason}: if the server requires TLS, set TEMPORAL_TLS=true`
        : reason,
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
      .replace(/^No connection established\. Last error: (Error: )?/, '')
      .replace(/[.\s]*Resolution note:\s*$/, '')
      // The time of the attempt.
      .replace(/\s*\(\d{4}-\d\d-\d\dT[\d:.]+Z\)$/, '')
      .trim()
  );
}
