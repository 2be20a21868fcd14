/** Characters of an answer that an error quotes: enough to distinguish a login page from a changed shape. */
const quotedCharactersMax = 200;

/** An answer that is not a success, or not the success that was expected. */
interface Refusal {
  readonly status: number;
  readonly text: string;
}

/**
 * Makes the function that quotes the start of a refusal on one line, with the key replaced. It quotes no
 * success, which contains records, and no authentication failure, which may repeat the key in any form.
 */
export function createQuote(apiKey: string): (answer: Refusal) => string {
  return ({ status, text }) => {
    if (status < 300 || status === 401 || status === 403) return `${text.length} characters`;
    // The key is replaced before the quote is cut, so that no cut leaves a part of it.
    const whole = text.replaceAll(apiKey, '[API key]').trim();
    if (whole === '') return 'an empty body';
    const start = whole.slice(0, quotedCharactersMax).replace(/\s+/g, ' ');
    // Control characters are escaped. JSON has its own escapes for quotation marks and backslashes.
    const escaped = JSON.stringify(start)
      .slice(1, -1)
      .replace(/\\(["\\])/g, '$1');
    return `"${escaped}${whole.length > quotedCharactersMax ? '…' : ''}"`;
  };
}
