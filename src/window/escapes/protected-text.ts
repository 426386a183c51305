/**
 * What of a protected file counts as its text when forget looks for it elsewhere. Of a page that is what people would
 * call its prose. Of a transcript it is the person's own words and nothing else: tool calls and their results hold
 * whole source files, which stand in the workspace because that was the work, and an agent's summary of the work is its
 * commit message (docs/escapes.md has the figures).
 *
 * JSON is read by its shape, not by whose it is: an object with a `role` or a `type` of a conversation's is a message.
 */
import { posix } from 'node:path';

/** Who speaks in a message that is not the person. */
const OTHERS = new Set([
  ...['assistant', 'model', 'agent', 'system', 'developer', 'tool', 'function', 'gemini', 'toolresult'],
  ...[
    'tool_use',
    'tool_result',
    'tool_call',
    'toolcall',
    'function_call',
    'function_call_output',
    'reasoning',
  ],
  ...['thinking', 'bashexecution', 'custom_tool_call', 'custom_tool_call_output', 'local_shell_call'],
]);
const PERSON = new Set(['user', 'human', 'user_message']);
/** Keys under which agents keep what a tool was given and gave, and what stands around a message. */
const NOT_SAID = new Set([
  ...[
    'arguments',
    'args',
    'input',
    'output',
    'result',
    'results',
    'tooluseresult',
    'tool_calls',
    'toolcalls',
  ],
  ...['diff', 'patch', 'stdout', 'stderr', 'command', 'cwd', 'file', 'files', 'snapshot', 'functionresponse'],
  ...['functioncall', 'base_instructions', 'instructions', 'system_prompt', 'environment', 'attachments'],
]);
/** What agents put into the person's message by themselves stands in tags: `<environment_context>`, `<system-reminder>`. */
const OWN_WORDS_TAGS = new Set(['task', 'feedback', 'user_query', 'user_message', 'answer']);
const TAGGED = /<([a-zA-Z][\w-]*)(?: [^<>]*)?>[\s\S]*?<\/\1>/g;
/** Cline's and Roo's tool results, and the project's own instructions as Codex sends them. */
const NOT_THE_PERSON = /^\s*(?:\[[^\]\n]+\] Result:|# AGENTS\.md instructions\b|\[[^\]\n]*tool[^\]\n]*\])/i;

const FENCED = /^[ \t]*(```+|~~~+)[\s\S]*?(?:^[ \t]*\1[^\n]*$|$(?![\s\S]))/gm;
const LICENCE =
  /permission is hereby granted|without warranty|warranties or conditions of any kind|redistribution and use in source|licensed under the|general public license|all rights reserved/i;

export interface ProtectedText {
  kind: 'page' | 'conversation';
  /** Passages: no shingle goes from one to the next. */
  passages: string[];
}

/** `path` is relative to the root. Bytes that are no text have none. */
export function protectedText(path: string, bytes: Buffer): ProtectedText {
  if (isBinary(bytes)) return { kind: 'page', passages: [] };
  const text = bytes.toString('utf8');
  const name = posix.basename(path);
  if (/^\s*[[{]/.test(text) || /\.jsonl?\b/.test(name)) {
    const values = parseValues(text);
    if (values.length > 0) return jsonText(values);
  }
  if (name === '.aider.chat.history.md') return { kind: 'conversation', passages: aiderWords(text) };
  return { kind: 'page', passages: prose(text) };
}

export function isBinary(bytes: Buffer): boolean {
  return bytes.subarray(0, 4096).includes(0);
}

/** A page with blanks in the place of its code: what code is cannot be told from a part of it. */
export function withoutCode(bytes: Buffer): Buffer {
  const text = bytes.toString('latin1');
  return Buffer.from(
    text.replace(FENCED, (code) => ' '.repeat(code.length)),
    'latin1',
  );
}

function prose(text: string): string[] {
  return text
    .replace(FENCED, '\n\n')
    .split(/\n\s*\n/)
    .reduce<string[]>(
      (passages, paragraph) => {
        // A passage goes on over a blank line, as it would in a copy.
        if (LICENCE.test(paragraph)) passages.push('');
        else passages[passages.length - 1] += `\n${paragraph}`;
        return passages;
      },
      [''],
    )
    .filter((passage) => passage.trim() !== '');
}

/** The person's lines of `.aider.chat.history.md` begin with `#### `. */
function aiderWords(text: string): string[] {
  return [[...text.matchAll(/^#### (.*)$/gm)].map(([, line]) => line!).join('\n')];
}

/** One document, or one value a line; lines that are none (the last, cut short) are left out. */
function parseValues(text: string): unknown[] {
  const whole = parse(text);
  if (whole !== undefined) return [whole];
  return text
    .split('\n')
    .map(parse)
    .filter((value) => typeof value === 'object' && value !== null);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function jsonText(values: unknown[]): ProtectedText {
  const found = { said: [] as string[], other: [] as string[], isConversation: false };
  for (const value of values) collect(value, found, false, 0);
  if (found.isConversation) {
    const passages = found.said.filter((text) => !NOT_THE_PERSON.test(text)).map(ownWords);
    return { kind: 'conversation', passages: passages.flatMap(prose) };
  }
  return { kind: 'page', passages: found.other.flatMap(prose) };
}

function ownWords(text: string): string {
  return text.replace(TAGGED, (block: string, tag: string) => (OWN_WORDS_TAGS.has(tag) ? block : '\n\n'));
}

const DEEPEST = 12;

function collect(
  value: unknown,
  found: { said: string[]; other: string[]; isConversation: boolean },
  said: boolean,
  depth: number,
): void {
  if (typeof value === 'string') (said ? found.said : found.other).push(value);
  else if (Array.isArray(value)) {
    if (depth < DEEPEST) for (const item of value) collect(item, found, said, depth + 1);
  } else if (typeof value === 'object' && value !== null && depth < DEEPEST) {
    const speaker = speakerOf(value as Record<string, unknown>);
    if (speaker) found.isConversation = true;
    if (speaker === 'other') return;
    for (const [key, item] of Object.entries(value)) {
      if (NOT_SAID.has(key.toLowerCase())) continue;
      collect(item, found, said || speaker === 'person', depth + 1);
    }
  }
}

function speakerOf({ role, type }: Record<string, unknown>): 'person' | 'other' | undefined {
  for (const mark of [role, type]) {
    if (typeof mark !== 'string') continue;
    if (PERSON.has(mark.toLowerCase())) return 'person';
    if (OTHERS.has(mark.toLowerCase())) return 'other';
  }
  return undefined;
}
