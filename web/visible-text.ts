/**
 * Characters that a reader cannot see or that change the direction of text around them: controls, marks, line
 * separators, tags and lone surrogates. Tab and line feed are not among them.
 */
const invisible =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\p{Surrogate}]|[\u{e0000}-\u{e007f}]/gu;

/** Makes text that a reader can trust: invisible characters are written as in JSON, for example `\u202e`. */
export const visibleText = (text: string): string => text.replace(invisible, escaped);

const escaped = (found: string): string =>
  Array.from({ length: found.length }, (_, place) => found.charCodeAt(place))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('');
