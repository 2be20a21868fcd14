/** Whether a text can be the id of an endpoint or a message; others, and what no database takes, are not looked for. */
export const isId = (text: string): boolean => /^\w{1,100}$/.test(text);
