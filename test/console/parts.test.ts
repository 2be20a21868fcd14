import { expect, test } from 'vitest';
import { inConsole } from '../../console/parts.ts';
import { failureTypes } from '../../contract/failures.ts';
import { untilDecided } from '../../contract/words.ts';
import { findingTypes } from '../../health/findings.ts';
import { plain } from '../../health/verdict.ts';
import { describeDecided } from '../../operations/decisions.ts';

test('a text of metersync names the buttons of the console instead of commands', () => {
  expect(inConsole('Fix the cause, then run metersync backfill all.')).toBe(
    'Fix the cause, then press “Backfill”.',
  );
  expect(inConsole('Run metersync schedule resume full.')).toBe('Press “Resume” on the page “System”.');
  expect(inConsole(`2 of 9 rows are missing: ${untilDecided}`)).toBe(
    '2 of 9 rows are missing: deletion is held back (the page “Deletes”)',
  );
});

test('what to do about a finding, a failure and a decision names no command that has a button', () => {
  const texts = [
    ...Object.values(findingTypes).map(({ todo }) => plain(todo)),
    ...Object.values(failureTypes).map(({ operator }) => operator),
    describeDecided({ kept: 2 }),
    describeDecided({ revived: 2, waiting: 0 }),
  ];
  for (const words of texts)
    expect(inConsole(words)).not.toMatch(/metersync (deletes|events|resume|alerts|checks|schedule|status)/);
  for (const words of texts) expect(inConsole(words)).not.toContain('metersync backfill all');
});
