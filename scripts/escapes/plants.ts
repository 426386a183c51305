/** Ways in which a page of memory gets out, each a file of its own. */
import type { Escape } from '../../src/window/escapes/escape.ts';

interface Form {
  name: string;
  isFound(found: Escape): boolean;
}

const PAGE = 'memory/page.md';

interface File {
  name: string;
  path: string;
  /** For `sh`, with its output in the file; `$P` is the page. */
  make: string;
}

const python = (body: string) => `python3 -c '
import json, re, sys
t = open(sys.argv[1]).read()
${body}' "$P"`;

const files: File[] = [
  { name: 'copied', path: 'notes.txt', make: 'cat "$P"' },
  {
    name: 'one line changed',
    path: 'changed.txt',
    make: 'sed "1s/.*/Something quite different stands here now/" "$P"',
  },
  {
    name: 'a word in twelve changed',
    path: 'reworded.txt',
    make: python('print(" ".join("changed" if i % 12 == 5 else w for i, w in enumerate(t.split())))'),
  },
  { name: 'wrapped anew', path: 'wrapped.txt', make: 'fold -s -w 40 "$P"' },
  { name: 'in upper case', path: 'upper.txt', make: python('print(t.upper())') },
  {
    name: 'as comments in source',
    path: 'comments.ts',
    make: 'echo "export const x = 1;"; sed "s,^,// ," "$P"',
  },
  { name: 'in JSON', path: 'page.json', make: python('print(json.dumps({"text": t, "n": 1}))') },
  {
    name: 'two sentences of 20 words in a long file',
    path: 'long.md',
    make: `seq 2000; ${python('w = t.split(); print(" ".join(w[:20]), "and so on.", " ".join(w[40:60]))')}; seq 2000`,
  },
  { name: '12 words (not claimed)', path: 'short.txt', make: python('print(" ".join(t.split()[:12]))') },
  { name: 'in base64 (not claimed)', path: 'page.b64', make: 'base64 "$P"' },
  { name: 'in gzip (not claimed)', path: 'page.gz', make: 'gzip -c "$P"' },
];

const inFile =
  (path: string) =>
  (found: Escape): boolean =>
    found.kind === 'text' && found.path === path;

export const forms: Form[] = [
  ...files.map(({ name, path }) => ({ name, isFound: inFile(path) })),
  {
    name: 'in a commit',
    isFound: ({ kind, what }) => kind === 'git' && what === 'notes.txt, in a new commit',
  },
  {
    name: 'in the message of a commit',
    isFound: ({ kind, what }) => kind === 'git' && what === 'the message of a new commit',
  },
  {
    name: 'in a pack',
    isFound: ({ kind, path, what }) =>
      kind === 'git' && path === 'packed/.git' && /in a new pack/.test(what ?? ''),
  },
  { name: "the person's words in a file", isFound: inFile('dictated.txt') },
];

/** For `sh -c` in an empty repository: `page` becomes memory, and then gets out in every way. */
export function plantScript(page: string): string {
  return `set -e
exec 2>&1
mkdir memory logs
cp '${page}' ${PAGE}
P=${PAGE}
sleep 0.03
${files.map(({ path, make }) => `{ ${make}; } > ${path}`).join('\n')}
git add notes.txt
git commit --quiet -F ${PAGE}
git init --quiet packed
cp ${PAGE} packed/inside.txt
cd packed
git add inside.txt
git commit --quiet -m 'Work'
git repack --quiet -a -d
git prune-packed
cd ..
rm -r packed/inside.txt
python3 -c '
import json
words = " ".join(open("${page}").read().split()[::-1])
lines = [{"type": "user", "message": {"role": "user", "content": words}}, {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]}}]
open("logs/session.jsonl", "w").write("".join(json.dumps(l) + chr(10) for l in lines))
open("dictated.txt", "w").write(words)
'`;
}
