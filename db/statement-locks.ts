/** A lock that a statement takes, and who waits for it meanwhile. */
export interface TableLock {
  readonly relation: string;
  readonly mode: LockMode;
}

/** Modes of Postgres that migrations take, and whom each makes wait. */
export const lockModes = {
  'ACCESS EXCLUSIVE': 'readers and writers wait',
  'SHARE ROW EXCLUSIVE': 'writers wait',
  SHARE: 'writers wait',
  'SHARE UPDATE EXCLUSIVE': 'nobody waits but other migrations and vacuum',
  'ROW EXCLUSIVE': 'nobody waits',
} as const;
export type LockMode = keyof typeof lockModes;

export interface StatementCost {
  /** Null: the statement is of a kind that is not known here. */
  readonly locks: readonly TableLock[] | null;
  /** Tables that are written anew, or read to the end, under that lock. */
  readonly rewrites: readonly string[];
  readonly scans: readonly string[];
}

/** Names of a relation, with or without its schema. */
const name = String.raw`([\w.]+)`;

/** Kinds of statements with the lock on the relation that they name first. */
const kinds: readonly (readonly [RegExp, LockMode | 'none'])[] = [
  [
    /^(create (or replace )?function|create (schema|type|extension|sequence|role)|grant|revoke|drop function)\b/,
    'none',
  ],
  [/^comment on (schema|function)\b/, 'none'],
  // Functions of migrations that make functions.
  [/^select metersync\.make_(history|notes)_of\(/, 'none'],
  [
    new RegExp(`^create (?:unique )?index concurrently .*? on (?:only )?${name}`),
    'SHARE UPDATE EXCLUSIVE',
  ],
  [new RegExp(`^create (?:unique )?index .*? on (?:only )?${name}`), 'SHARE'],
  [
    new RegExp(`^create (?:or replace )?(?:constraint )?trigger .*? on ${name}`),
    'SHARE ROW EXCLUSIVE',
  ],
  [new RegExp(`^create (?:or replace )?view ${name}`), 'ACCESS EXCLUSIVE'],
  [
    new RegExp(`^drop (?:table|view|index)(?: concurrently)?(?: if exists)? ${name}`),
    'ACCESS EXCLUSIVE',
  ],
  [new RegExp(`^(?:drop trigger .*? on|truncate(?: table)?) ${name}`), 'ACCESS EXCLUSIVE'],
  [new RegExp(`^comment on (?:table|view) ${name}`), 'SHARE UPDATE EXCLUSIVE'],
  [new RegExp(`^(?:insert into|update|delete from) ${name}`), 'ROW EXCLUSIVE'],
];

/**
 * Says which locks a statement of a migration takes, and which tables it writes anew, by its text.
 * Tests compare it with what Postgres does.
 */
export function statementCost(text: string): StatementCost {
  const statement = normalised(text);
  const altered = new RegExp(`^alter table (?:if exists )?(?:only )?${name} (.*)$`).exec(statement);
  if (altered !== null) return alterCost(altered[1] ?? '', altered[2] ?? '');
  const created = new RegExp(`^create (?:unlogged )?table (?:if not exists )?${name}(.*)$`).exec(
    statement,
  );
  if (created !== null) return createCost(created[2] ?? '');
  const column = /^comment on column ([\w.]+)\.\w+ is/.exec(statement);
  if (column !== null) return plain(column[1] ?? '', 'SHARE UPDATE EXCLUSIVE');
  for (const [kind, mode] of kinds) {
    const found = kind.exec(statement);
    if (found === null) continue;
    if (mode === 'none') return { locks: [], rewrites: [], scans: [] };
    const relation = found[1] ?? '';
    return {
      ...plain(relation, mode),
      scans: statement.includes(' index ') && !statement.startsWith('drop') ? [relation] : [],
    };
  }
  return { locks: null, rewrites: [], scans: [] };
}

/** The table that a statement creates: nobody else uses it yet. */
export function createdTable(text: string): string | undefined {
  const created = new RegExp(`^create (?:unlogged )?table (?:if not exists )?${name}`);
  return created.exec(normalised(text))?.[1];
}

const plain = (relation: string, mode: LockMode): StatementCost => ({
  locks: [{ relation, mode }],
  rewrites: [],
  scans: [],
});

/** A new table; its references and its parent are tables that others use. */
function createCost(rest: string): StatementCost {
  const parent = new RegExp(`partition of ${name}`).exec(rest)?.[1];
  return {
    locks: [
      ...(parent === undefined ? [] : [{ relation: parent, mode: 'ACCESS EXCLUSIVE' as const }]),
      ...referenced(rest),
    ],
    rewrites: [],
    scans: [],
  };
}

/** Each reference puts a trigger on the table that it names. */
const referenced = (text: string): TableLock[] =>
  [...text.matchAll(new RegExp(`\\breferences ${name}`, 'g'))].map(([, relation = '']) => ({
    relation,
    mode: 'SHARE ROW EXCLUSIVE',
  }));

/** Changes of a table that wait for no reader. */
const lightest =
  /^(validate constraint|set \(|reset \(|alter (column )?\w+ set statistics|set without cluster)/;
const reference = /^add (constraint \w+ )?foreign key/;
const rewriting =
  /^(alter (column )?\w+ (set data )?type\b|set (logged|unlogged|access method|tablespace)|add (column )?.*(\bserial\b|\bbigserial\b|generated (always|by default)|default [^,]*(random|clock_timestamp|nextval|uuid)))/;
const scanning =
  /^(validate constraint|add (constraint \w+ )?(check|foreign key|unique|primary key|exclude)|alter (column )?\w+ set not null|attach partition)/;

function alterCost(relation: string, rest: string): StatementCost {
  const changes = topLevel(rest);
  const light = changes.every((change) => lightest.test(change));
  const references = changes.every((change) => reference.test(change) || lightest.test(change));
  const mode = light
    ? 'SHARE UPDATE EXCLUSIVE'
    : references
      ? 'SHARE ROW EXCLUSIVE'
      : 'ACCESS EXCLUSIVE';
  const valid = changes.filter((change) => !change.endsWith(' not valid'));
  return {
    locks: [{ relation, mode }, ...referenced(rest)],
    rewrites: changes.some((change) => rewriting.test(change)) ? [relation] : [],
    scans: valid.some((change) => scanning.test(change)) ? [relation] : [],
  };
}

/** Splits at the commas that stand in no parentheses. */
function topLevel(text: string): readonly string[] {
  const parts: string[] = [''];
  let depth = 0;
  for (const character of text) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (character === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts.map((part) => part.trim());
}

/** Lower case, without comments, quotes of names, and line breaks. */
const normalised = (text: string): string =>
  text
    .replace(/^\s*--.*$/gm, '')
    .replaceAll('"', '')
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/;$/, '')
    .toLowerCase();
