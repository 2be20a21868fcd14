/** Commands that the console has a button or a page for, and the name of the button or page. */
const names: readonly (readonly [command: RegExp, name: string])[] = [
  [/metersync deletes approve or (?:metersync deletes )?reject/g, '“Delete them” or “Keep them”'],
  [/metersync deletes list(?: --all)?/g, 'the page “Deletes”'],
  [/metersync deletes undo/g, '“Undo”'],
  [/metersync events list(?: --(?:outcome|code) [\w-]+)*/g, '“Events”'],
  [/metersync events replay(?: --outcome \w+)?/g, '“Replay”'],
  [/metersync alerts acknowledge(?: \w+)?/g, '“Acknowledge”'],
  [/metersync checks acknowledge(?: \w+)?/g, '“Acknowledge”'],
  [/metersync checks list/g, 'the page “Issues”'],
  [/metersync resume(?: --code \w+)?/g, '“Try again”'],
  [/metersync schedule resume(?: (?:full|reconcile))?/g, '“Resume” on the page “System”'],
  [/metersync schedule show/g, 'the page “System”'],
  [/metersync backfill all/g, '“Backfill”'],
  [/metersync backfill --run [\w-]+/g, '“Run”'],
  [/metersync status/g, 'the page “Overview”'],
];

/** Turns the commands of a text into the buttons and pages of the console that do the same. */
export function inConsole(words: string): string {
  const named = names.reduce((text, [command, name]) => text.replace(command, name), words);
  return named.replace(/\b([Rr])un “/g, (_, letter) => `${letter === 'R' ? 'Press' : 'press'} “`);
}
