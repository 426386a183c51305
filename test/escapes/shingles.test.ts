// The comparison itself: what is found whatever was done to it, and what counts for nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { protectedText } from '../../src/window/escapes/protected-text.ts';
import { ProtectedShingles } from '../../src/window/escapes/resemblance.ts';

const PAGE = `# What Ada told me

Ada Lovelace is going to leave the company in March because her mother is ill, and nobody
else on the team knows about it yet. She wants Charles to take over the analytical engine,
but she is afraid that he will refuse unless the salary is raised to match what he had before.
`;

function wordsFound(
  page: string,
  text: string | Buffer,
  { path = 'memory/page.md', before = '', since = 1000, written = 2000 } = {},
): number {
  const { kind, passages } = protectedText(path, Buffer.from(page));
  const source = { shown: path, kind, passages: passages.map((passage) => ({ text: passage, since })) };
  const shingles = new ProtectedShingles([source]);
  if (before) shingles.forgive(Buffer.from(before));
  const hits = shingles.look(Buffer.from(text), written);
  return (hits && shingles.judge(hits)?.words) ?? 0;
}

const ALL = wordsFound(PAGE, PAGE);

const kept: [string, string][] = [
  ['wrapped anew', PAGE.replaceAll('\n', ' ')],
  ['one word a line', PAGE.split(/\s+/).join('\n')],
  ['in upper case', PAGE.toUpperCase()],
  ['as comments', PAGE.replaceAll(/^/gm, ' * ')],
  ['as a quotation in Markdown', PAGE.replaceAll(/^/gm, '> ').replaceAll('Ada', '**Ada**')],
  ['in JSON', JSON.stringify({ text: PAGE })],
  ['with other dashes, quotes and spaces', PAGE.replaceAll(', ', '\u00a0— ').replaceAll('.', '…”')],
  ['in the middle of a long file', `${'line\n'.repeat(5000)}${PAGE}${'line\n'.repeat(5000)}`],
];
for (const [how, text] of kept) {
  test(`a page is found ${how}`, () => assert.equal(wordsFound(PAGE, text), ALL));
}

test('all words of a page are counted', () => assert.equal(ALL, PAGE.match(/\w+/g)!.length));

test('a page with a changed line is found', () => {
  const lines = PAGE.split('\n');
  lines[3] = 'and something quite different stands in its place here';
  const words = wordsFound(PAGE, lines.join('\n'));
  assert.ok(words >= 30 && words < ALL, `${words} of ${ALL} words`);
});

test('a text without spaces between its words is found', () => {
  const page = '艾达打算三月离开公司，因为她的母亲病了，团队里还没有人知道这件事。她希望查尔斯接手分析机。\n';
  assert.ok(wordsFound(page, `// ${page.replaceAll('，', ',\n')}`) > 16);
});

test('accents and capitals with accents are one', () => {
  const page =
    'Zoë möchte im Frühjahr künftig öfter über Ärger, Übermut und die Öffnung der Straße nach Süden sprechen, aber erst, wenn Jürgen wieder gesund ist.';
  assert.ok(
    wordsFound(
      page,
      page.replaceAll(/[a-zäöü]/g, (letter) => letter.toUpperCase()),
    ) >= 16,
  );
});

const coincidences: [string, string, string][] = [
  [
    'a sentence of twelve words',
    PAGE,
    'Ada Lovelace is going to leave the company in March because her aunt is well.',
  ],
  ['the same words in another order', PAGE, PAGE.split(/\s+/).sort().join(' ')],
  [
    'imports and calls',
    `import { readFileSync, writeFileSync } from 'node:fs';\nconst a = await open(join(root, 'a.ts'), { flag: 'w' });\n${'export const b = (x: number) => x * 2 + offset(list[0]!.size);\n'.repeat(3)}`,
    `import { readFileSync, writeFileSync } from 'node:fs';\nconst a = await open(join(root, 'a.ts'), { flag: 'w' });\n${'export const b = (x: number) => x * 2 + offset(list[0]!.size);\n'.repeat(3)}`,
  ],
  ['numbers', '2026 11 30 12 00 00 17 4 '.repeat(9), '2026 11 30 12 00 00 17 4 '.repeat(9)],
  ['the same few words', 'to do to do to do '.repeat(20), 'to do to do to do '.repeat(20)],
  ['code in a fenced block', `Notes\n\n\`\`\`\n${PAGE}\`\`\`\n`, PAGE],
  [
    'a licence',
    'Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files, to deal in the Software without restriction.',
    'Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files, to deal in the Software without restriction.',
  ],
];
for (const [what, page, text] of coincidences) {
  test(`not found: ${what}`, () => assert.equal(wordsFound(page, text), 0));
}

test('what was protected before the window counts for nothing', () => {
  assert.equal(wordsFound(PAGE, PAGE, { before: PAGE }), 0);
});

test('what stood elsewhere first counts for nothing', () => {
  assert.equal(wordsFound(PAGE, PAGE, { since: 3000 }), 0);
});

test('what stood elsewhere first counts for nothing in a later copy either', () => {
  const { kind, passages } = protectedText('memory/page.md', Buffer.from(PAGE));
  const source = { shown: 'p', kind, passages: passages.map((text) => ({ text, since: 2000 })) };
  const shingles = new ProtectedShingles([source]);
  const later = shingles.look(Buffer.from(PAGE), 3000)!;
  assert.ok(shingles.judge(later));
  shingles.look(Buffer.from(PAGE), 1000);
  assert.equal(shingles.judge(later), undefined);
});

const SAID = PAGE.replaceAll('\n', ' ');

/** What each agent's transcript has of one conversation, in which the person says SAID and the agent writes TOOL. */
const TOOL =
  'The tool was given this long text that goes into a source file of the project, word by word, as it should be.';
const transcripts: Record<string, object[]> = {
  'Claude Code': [
    { type: 'user', message: { role: 'user', content: SAID } },
    {
      type: 'assistant',
      message: {
        role: 'assistant',
        content: [{ type: 'tool_use', name: 'Write', input: { content: TOOL } }],
      },
    },
    {
      type: 'user',
      message: { role: 'user', content: [{ type: 'tool_result', content: TOOL }] },
      toolUseResult: { content: TOOL },
    },
    { type: 'assistant', message: { role: 'assistant', content: [{ type: 'text', text: TOOL }] } },
  ],
  Codex: [
    { type: 'session_meta', payload: { base_instructions: { text: TOOL } } },
    {
      type: 'response_item',
      payload: { type: 'message', role: 'developer', content: [{ type: 'input_text', text: TOOL }] },
    },
    {
      type: 'response_item',
      payload: {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_text', text: `<environment_context>${TOOL}</environment_context>` }],
      },
    },
    {
      type: 'response_item',
      payload: {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_text', text: `# AGENTS.md instructions for /w\n\n${TOOL}` }],
      },
    },
    { type: 'event_msg', payload: { type: 'user_message', message: SAID } },
    { type: 'response_item', payload: { type: 'custom_tool_call', input: TOOL } },
    { type: 'response_item', payload: { type: 'function_call_output', output: TOOL } },
  ],
  pi: [
    { type: 'session', version: 3, cwd: '/w' },
    { type: 'message', message: { role: 'user', content: [{ type: 'text', text: SAID }] } },
    {
      type: 'message',
      message: { role: 'assistant', content: [{ type: 'toolCall', arguments: { content: TOOL } }] },
    },
    { type: 'message', message: { role: 'toolResult', content: [{ type: 'text', text: TOOL }] } },
  ],
  'Gemini CLI': [
    { type: 'user', content: SAID },
    {
      type: 'gemini',
      content: TOOL,
      toolCalls: [{ args: { content: TOOL }, result: [{ functionResponse: { output: TOOL } }] }],
    },
  ],
};
for (const [agent, lines] of Object.entries(transcripts)) {
  const log = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  test(`of a transcript of ${agent} the person's words are looked for, and no others`, () => {
    assert.ok(wordsFound(log, SAID, { path: 'logs/session.jsonl' }) >= ALL);
    assert.equal(wordsFound(log, TOOL, { path: 'logs/session.jsonl' }), 0);
  });
}

test('of a memory in JSON all that is said is looked for', () => {
  const memory = `${JSON.stringify({ type: 'entity', name: 'Ada', observations: [PAGE] })}\n`;
  assert.equal(wordsFound(memory, PAGE, { path: 'memory.jsonl' }), ALL);
});

test('a file that is no text has none', () => {
  assert.deepEqual(protectedText('memory/m.db', Buffer.from(`SQLite\0${PAGE}`)).passages, []);
});
