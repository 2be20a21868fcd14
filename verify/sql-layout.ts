/**
 * Adjusts the output of sql-formatter: short clauses and parentheses go on one line, join conditions under
 * their join, headers of functions a clause a line. It moves whitespace alone.
 */
export function layOut(text: string): string {
  return text
    .split('\n\n')
    .map(layOutStatement)
    .join('\n\n')
    .replace(/^begin atomic\n([\s\S]*?\n)\n((?:--.*\n)*)end;$/gm, (_, body: string, comments: string) => {
      return `begin atomic\n${`${body}${comments}`.replace(/^(?=.)/gm, '  ')}end;`;
    })
    .replace(/^(comment on .*;)\n\n(?=comment on )/gm, '$1\n')
    .replace(/^(comment on .*? is) ('.*)$/gm, (line, about: string, literal: string) =>
      line.length > widest || literal.startsWith("'@literal") ? `${about}\n  ${literal}` : line,
    )
    .replace(/^( {2}'.*';)\n\n(?=comment on )/gm, '$1\n');
}

/** Bodies are indented once more in a function. */
const widest = 98;
/** A longer query goes on several lines. */
const widestQuery = 80;

/** A line, and the lines below it that are indented further. */
interface Line {
  text: string;
  below: Line[];
}

function layOutStatement(statement: string): string {
  const { header, rest } = splitHeader(statement);
  const lines = rearranged(tree(rest === '' ? [] : rest.split('\n')), 0);
  return [...header, ...print(lines, 0)].join('\n');
}

function tree(texts: readonly string[]): Line[] {
  const top: Line[] = [];
  const open: { indent: number; below: Line[] }[] = [{ indent: -1, below: top }];
  for (const text of texts) {
    const indent = text.length - text.trimStart().length;
    while ((open.at(-1)?.indent ?? -1) >= indent) open.pop();
    const line: Line = { text: text.trim(), below: [] };
    (open.at(-1)?.below ?? top).push(line);
    open.push({ indent, below: line.below });
  }
  return top;
}

const print = (lines: readonly Line[], depth: number): string[] =>
  lines.flatMap(({ text, below }) => [`${'  '.repeat(depth)}${text}`, ...print(below, depth + 1)]);

const isJoin = (line: Line | undefined): boolean =>
  line !== undefined && /^((left|right|full|inner|cross|natural)\s)?(outer\s)?join\b/.test(line.text);
const isCondition = (line: Line | undefined): boolean => line !== undefined && /^(and|or) /.test(line.text);
const isComment = (line: Line | undefined): boolean => line?.text.startsWith('--') ?? false;
const isClause = (line: Line | undefined): boolean =>
  /^(where|group by|having|window|order by|limit|offset|for|on conflict)\b/.test(line?.text ?? '');

/** Joins several lines into one; undefined if that cannot be. */
function flat(lines: readonly Line[]): string | undefined {
  const texts: string[] = [];
  for (const { text, below } of lines) {
    if (text.includes('--') || /[([]$/.test(text) || /^[)\]]/.test(text)) return undefined;
    const rest = flat(below);
    if (rest === undefined) return undefined;
    texts.push(text, rest);
  }
  return texts.filter((text) => text !== '').join(' ');
}

/** Handles the lines of one block, from the innermost out. */
function rearranged(lines: readonly Line[], depth: number): Line[] {
  const inner = lines.map(({ text, below }) => ({ text, below: rearranged(below, depth + 1) }));
  const joined = inClauses(withConditions(inPairs(inParentheses(inner, depth), depth)), depth);
  return mergedSelects(joined).flatMap((line) => inPairs(broken(line, depth), depth));
}

/** Breaks a line that is too long, at an operator or within its last parentheses. */
function broken(line: Line, depth: number): Line[] {
  const { text, below } = line;
  const isComplete = 2 * depth + text.length <= widest || below.length > 0;
  if (isComplete || /--|\{\{|^(comment|create|alter|drop|grant|revoke|insert|with) /.test(text))
    return [line];
  const patterns = text.startsWith('when ') ? [/^ then /] : [/^ (\|\||[-+]) /, /^ [*/] /];
  const [first = '', ...parts] =
    patterns
      .map((next) => splitAt(text, (rest) => next.test(rest)).map((part) => part.trim()))
      .find((split) => split.length > 1) ?? [];
  if (parts.length > 0) {
    return [{ text: first, below: parts.flatMap((part) => broken({ text: part, below: [] }, depth + 1)) }];
  }
  const found = bracketed(text);
  if (found === undefined) return [line];
  const items = splitAt(found.inside, (rest) => rest.startsWith(',')).map((item) =>
    item.replace(/^,\s*/, ''),
  );
  return [
    {
      text: found.before,
      below: items.flatMap((item, at) =>
        broken({ text: at < items.length - 1 ? `${item},` : item, below: [] }, depth + 1),
      ),
    },
    { text: found.after, below: [] },
  ];
}

/** Returns the text before, in and after the longest outermost parentheses. */
function bracketed(text: string): { before: string; inside: string; after: string } | undefined {
  let longest: { start: number; end: number } | undefined;
  let start = 0;
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === "'") quoted = !quoted;
    if (quoted) continue;
    if (/[([]/.test(character) && depth++ === 0) start = at + 1;
    if (!/[)\]]/.test(character) || --depth > 0 || text.charAt(start - 1) !== '(') continue;
    if (at - start > (longest === undefined ? 0 : longest.end - longest.start)) longest = { start, end: at };
  }
  if (longest === undefined) return undefined;
  const { start: from, end } = longest;
  return { before: text.slice(0, from), inside: text.slice(from, end), after: text.slice(end) };
}

/** Puts parentheses, and a case of one condition, on one line if they fit. */
function inParentheses(lines: readonly Line[], depth: number): Line[] {
  const out: Line[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    let line = lines[at] as Line;
    line.text = calling(line.text);
    for (let next = lines[at + 1]; next !== undefined; next = lines[at + 1]) {
      const whole = onOneLine(line, next, depth);
      if (whole === undefined) break;
      line = { text: calling(whole), below: next.below };
      at += 1;
    }
    out.push(line);
  }
  return out;
}

function onOneLine(line: Line, next: Line, depth: number): string | undefined {
  if (line.text.includes('--') || line.below.length === 0) return undefined;
  const isParenthesis = /[([]$/.test(line.text) && /^[)\]]/.test(next.text);
  if (/\bextract\($/.test(line.text)) joinFirst(line.below, depth + 1);
  const inside = flat(line.below);
  if (inside === undefined || next.text.includes('--')) return undefined;
  if (isParenthesis) {
    const holdsQuery = /^(select|with|values)\b/.test(inside);
    if (/^create table\b/.test(line.text)) return undefined;
    if (holdsQuery && /(\bas( not)?( materialized)?|lateral|^from|^) \($|^\($/.test(line.text))
      return undefined;
    const whole = `${line.text}${inside}${next.text}`;
    return 2 * depth + whole.length <= (holdsQuery ? widestQuery : widest) ? whole : undefined;
  }
  const isCase = /(^|[\s(])case\b[^']*$/.test(line.text) && /^end\b/.test(next.text);
  if (!isCase || line.below.filter(({ text }) => text.startsWith('when ')).length > 1) return undefined;
  const whole = `${line.text} ${inside} ${next.text}`;
  return 2 * depth + whole.length <= widestQuery ? whole : undefined;
}

/** Puts `epoch` and `from x` of extract on one line. */
function joinFirst(below: Line[], depth: number): void {
  const [field, from] = below;
  if (field === undefined || from === undefined || !from.text.startsWith('from ')) return;
  below.splice(0, 2, ...broken({ text: `${field.text} ${from.text}`, below: from.below }, depth));
}

/** Removes the space before the parenthesis of a call that goes on below. */
const calling = (text: string): string =>
  text.replace(
    /^(.*?)([a-z_]+\.[a-z_]+|extract|daterange|jsonb_build_object) \($/,
    (all, before: string, name: string) =>
      /\b(table|into|as|exists|index|on|references|view)\s*$/.test(before) ? all : `${before}${name}(`,
  );

/** Puts a key beside its value. */
function inPairs(lines: readonly Line[], depth: number): Line[] {
  for (const line of lines) {
    if (!line.text.endsWith('jsonb_build_object(')) continue;
    const pairs: Line[] = [];
    for (const item of line.below) {
      const key = pairs.at(-1);
      const fits = key !== undefined && 2 * depth + 2 + key.text.length + 1 + item.text.length <= widest;
      if (key !== undefined && fits && /^'[^']*',$/.test(key.text) && !isComment(item)) {
        pairs.splice(-1, 1, { text: `${key.text} ${item.text}`, below: item.below });
      } else pairs.push(item);
    }
    line.below = pairs;
  }
  return [...lines];
}

/** Puts conditions of a join, or of a `when`, below it. */
function withConditions(lines: readonly Line[]): Line[] {
  const out: Line[] = [];
  let joined = false;
  let conditions: Line[] | undefined;
  for (const [at, line] of lines.entries()) {
    const last = out.at(-1);
    const begins = isJoin(line) || line.text.startsWith('when ');
    if (begins || line.text.startsWith('else ') || (conditions ?? out).at(-1)?.text.endsWith(',')) {
      conditions = undefined;
      joined = begins;
    } else if (joined && conditions === undefined && last !== undefined) {
      const first = lines.slice(at).find((one) => !isComment(one));
      if (isCondition(line) || (isComment(line) && isCondition(first))) conditions = last.below;
    }
    (conditions ?? out).push(line);
  }
  return out;
}

const startsWithFirst = new Set(['from', 'where', 'having']);
const fitsOrNot = new Set(['group by', 'order by', 'partition by', 'limit', 'offset', 'window', 'returning']);

/** Lays out clauses: what follows a keyword goes beside it if it fits. */
function inClauses(lines: readonly Line[], depth: number): Line[] {
  return lines.flatMap((line): Line[] => {
    const { text, below } = line;
    const [first] = below;
    if (first === undefined || isComment(first)) return [line];
    if (text === 'select distinct') return [distinctOn(line)];
    if (text === 'select' && below.length === 1 && first.below.length === 0) {
      return [{ text: `select ${first.text}`, below: [] }];
    }
    const whole = flat(below);
    const fits = whole !== undefined && 2 * depth + text.length + 1 + whole.length <= widest;
    const isList = below.slice(0, -1).some((one) => one.text.endsWith(','));
    if (fitsOrNot.has(text) || isList) {
      const mayJoin = fitsOrNot.has(text) || text === 'from';
      return mayJoin && fits ? [{ text: `${text} ${whole}`, below: [] }] : [line];
    }
    return startsWithFirst.has(text) ? withFirst(text, below) : [line];
  });
}

/** Lays out `from (` … `) x` with the joins below, and `where a` with the other conditions below. */
function withFirst(keyword: string, below: readonly Line[]): Line[] {
  const found = below.findIndex((_, at) => {
    const next = below.slice(at).find((one) => !isComment(one));
    return at > 0 && (isJoin(next) || isCondition(next));
  });
  const end = found === -1 ? below.length : found;
  const first = below.slice(0, end);
  const rest = below.slice(end);
  const out = first.map((line, at) => ({
    text: at === 0 ? `${keyword} ${line.text}` : line.text,
    below: [...line.below],
  }));
  out.at(-1)?.below.push(...rest);
  return out;
}

function distinctOn(line: Line): Line {
  const [first, ...others] = line.below;
  const [, on, column] = /^on (\((?:[^()]|\([^()]*\))*\)) (.+)$/.exec(first?.text ?? '') ?? [];
  if (first === undefined || on === undefined || column === undefined) return line;
  return {
    text: `select distinct on ${on}`,
    below: [{ text: column, below: first.below }, ...others],
  };
}

/** Puts `select * from x` on one line if that is the complete query. Puts a grant on one line. */
function mergedSelects(lines: readonly Line[]): Line[] {
  const out: Line[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] as Line;
    const next = lines[at + 1];
    const isComplete = next !== undefined && next.below.length === 0 && !isClause(lines[at + 2]);
    if (line.text === 'select *' && isComplete && /^from [\w.]+(\([\w., ]*\))?( \w+)?;?$/.test(next.text)) {
      out.push({ text: `${line.text} ${next.text}`, below: [] });
      at += 1;
    } else if (line.text === 'revoke' || line.text === 'grant') {
      const whole = flat(lines.slice(at));
      if (whole === undefined || whole.length > widest) out.push(...lines.slice(at));
      else out.push({ text: whole, below: [] });
      break;
    } else out.push(line);
  }
  return out;
}

/** Lays out the header of a function, a clause a line, and the rest after it. */
function splitHeader(statement: string): { header: string[]; rest: string } {
  const start = /^create (or replace )?function /m.exec(statement)?.index;
  if (start === undefined) return { header: [], rest: statement };
  const end = /\b(begin atomic|as '@body\d+@')/.exec(statement.slice(start));
  const header = statement.slice(start, start + (end?.index ?? 0));
  if (end === null || header.includes('--')) return { header: [], rest: statement };
  const before = statement.slice(0, start).trimEnd();
  return {
    header: [
      ...(before === '' ? [] : before.split('\n')),
      ...clauses(header.replace(/\s+/g, ' ').replaceAll('( ', '(').replaceAll(' )', ')').trim()).flatMap(
        brokenList,
      ),
    ],
    rest: statement.slice(start + end.index),
  };
}

/** Splits before each of these words outside of parentheses. */
function clauses(header: string): string[] {
  return splitAt(header, (rest) => /^ (returns|language|set) /.test(rest)).map((clause) => clause.trim());
}

/** Lays out a list in parentheses: an item a line if it is longer than a line. */
function brokenList(clause: string): string[] {
  const [, name, list] = /^([^(]*\()(.*)\)$/.exec(clause) ?? [];
  if (clause.length <= widest || name === undefined || list === undefined) return [clause];
  const items = splitAt(list, (rest) => rest.startsWith(',')).map((item) => item.replace(/^,\s*/, ''));
  return [name, ...items.map((item, at) => `  ${item}${at < items.length - 1 ? ',' : ''}`), ')'];
}

/** Splits where the rest matches and no bracket or literal is open. */
function splitAt(text: string, isSplit: (rest: string) => boolean): string[] {
  const parts: string[] = [];
  let from = 0;
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === "'") quoted = !quoted;
    if (quoted) continue;
    if (/[([]/.test(character)) depth += 1;
    if (/[)\]]/.test(character)) depth -= 1;
    if (depth === 0 && at > from && isSplit(text.slice(at))) {
      parts.push(text.slice(from, at));
      from = at;
    }
  }
  return [...parts, text.slice(from)];
}
