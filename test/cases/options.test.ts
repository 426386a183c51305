// E39 and issue 2: the clean room, and writes that fail loudly.
import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { forgetExec } from '../harness/forget.ts';
import { inWindow, python, withWorkspace } from './window.ts';

inWindow('in a clean room protected paths read as absent, can be written, and are intact afterwards', {
  script: `ls memory MEMORY.md; cat memory/old.md; ls logs; mkdir -p memory; echo new > memory/old.md; cat memory/old.md; ls memory; echo code > src/x; true`,
  prints: `ls: cannot access 'memory': No such file or directory
ls: cannot access 'MEMORY.md': No such file or directory
cat: memory/old.md: No such file or directory
plain.txt
new
old.md
`,
  exec: { options: ['--quiet', '--hide'] },
  lower: { 'src/x': 'code\n', 'memory/old.md': '# What I know\n\nAda prefers tabs.\n' },
});

inWindow('a read-only window fails protected writes with EROFS and lets the others through', {
  script: python(`
import errno, os
def attempt(what):
    try: what(); print("done")
    except OSError as e: print(errno.errorcode[e.errno])
attempt(lambda: open("memory/old.md", "ab", buffering=0).write(b"x"))
attempt(lambda: open("memory/new.md", "w"))
attempt(lambda: os.unlink("memory/old.md"))
attempt(lambda: os.rename("memory/old.md", "memory/x.md"))
attempt(lambda: os.rename("README.md", "memory/x.md"))
attempt(lambda: os.mkdir("memory/d"))
attempt(lambda: os.chmod("memory/old.md", 0o600))
attempt(lambda: os.truncate("memory/old.md", 0))
attempt(lambda: os.link("README.md", "memory/x.md"))
attempt(lambda: os.symlink("x", "memory/x.md"))
attempt(lambda: os.utime("memory/old.md"))
attempt(lambda: os.setxattr("memory/old.md", "user.x", b"x"))
attempt(lambda: open("src/main.py", "a").write("x"))
print(open("memory/old.md").read(), end="")
`),
  prints: `${'EROFS\n'.repeat(12)}done\n# What I know\n\nAda prefers tabs.\n`,
  exec: { options: ['--quiet', '--readonly'] },
});

inWindow('an exemption lets a path through, and --no-defaults leaves only what is asked for', {
  script: 'echo real > logs/train.jsonl; echo leak > logs/a.jsonl; cat logs/train.jsonl',
  prints: 'real\n',
  exec: { options: ['--quiet', '--exempt', 'train.jsonl'] },
  lower: { 'logs/train.jsonl': 'real\n' },
  isProtected: (path) => path.startsWith('memory/') || path === 'logs/a.jsonl',
});

inWindow('with --no-defaults only what is asked for is protected', {
  script: 'echo real > logs/new.jsonl; echo leak > docs/x.md; cat docs/x.md',
  prints: 'leak\n',
  exec: { options: ['--quiet', '--no-defaults', '--protect', '/docs/'] },
  isProtected: (path) => path.startsWith('docs/'),
  lower: { 'logs/new.jsonl': 'real\n', 'docs/x.md': null },
});

withWorkspace(
  'a directory that the user may read and not write is a workspace too',
  async (workspace) => {
    chmodSync(workspace.path, 0o555);
    const result = await forgetExec(workspace, [
      'sh',
      '-c',
      'cat README.md >/dev/null; echo x > new || echo refused',
    ]);
    chmodSync(workspace.path, 0o755);
    assert.equal(result.stdout, 'refused\n', result.stderr);
  },
  { users: ['ordinary'] },
);
