import { expect, test } from 'vitest';
import { differencesFromDocument, statementsOfDocument } from '../../verify/service-document.ts';

const document = `# A service

| Not | counted |

## 1. What it does
Prose.

- One thing.
- Another thing.
- Other capabilities: not shown.

## 2. Fields

### 2.1 Records

| Field | Type |
|---|---|
| \`id\` | string |
| \`name\` | text; its length: not shown. |

More of them:

| Field | Type |
| --- | --- |
| \`old\` | object |

## 3. Rules

1. First.
2. Second.
3. Third: not shown.
`;
const stated = ['1.1', '1.2', '2.1 row 1', '2.1 row 2', '2.1 row 3', '3.1', '3.2'];

test('bullets, numbers and table rows of a section are statements, unless they are not shown', () => {
  expect(statementsOfDocument(document)).toEqual(stated);
});

test('a list is complete with each statement; it may have the prose of a section and nothing else', () => {
  expect(differencesFromDocument(document, [...stated, '1'])).toEqual([]);
  expect(differencesFromDocument(document, [...stated.slice(1), '3.7'])).toEqual([
    '1.1 of the document is not listed',
    '3.7 is listed and not in the document',
  ]);
});
