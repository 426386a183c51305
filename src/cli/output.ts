/** What the person reads: lines on stderr for what happens, stdout for what was asked for. */

import { say as sayLines } from '../window/say.ts';

/** One line, whatever the text holds: a workspace's configuration or file names must not steer the terminal. */
export function printable(text: string): string {
  return (
    text
      .replaceAll('\n', ' ')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is escaped here
      .replace(/[\x00-\x1f\x7f-\x9f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
  );
}

export function say(line: string): void {
  sayLines([`forget: ${printable(line)}`]);
}

let listening = false;

/** To standard output. Who reads no more (`| head`) has all that it wanted. */
export function print(text: string): void {
  if (!listening) {
    listening = true;
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      process.exit(0);
    });
  }
  process.stdout.write(text);
}

export function printJson(value: unknown): void {
  print(`${JSON.stringify(value, null, 2)}\n`);
}
