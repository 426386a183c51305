// What a differential fuzzer and stress runs found once: one test a defect, each of which failed before its fix.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { forgetExec } from '../harness/forget.ts';
import { isProtectedByDefault } from '../harness/protected.ts';
import { forgetFor } from '../harness/users.ts';
import { type RunResult, runWatched } from '../harness/watchdog.ts';
import { assertLower, inWindow, python, sameAsPlain, withWorkspace } from './window.ts';

const EXCHANGE = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def exchange(a, b):
    return libc.renameat2(-100, a.encode(), -100, b.encode(), 2)
`;

inWindow('an exchange of a new unprotected file with a protected one leaves nothing of either in the lower', {
  script: python(`${EXCHANGE}
open('src/new', 'w').write('SECRET')
print(exchange('src/new', 'memory/old.md'), open('memory/old.md').read(), open('src/new').readline().strip())`),
  prints: '0 SECRET # What I know\n',
  lower: { 'src/new': null },
});

inWindow('a new file that is linked to a protected name and then unlinked is gone from the lower', {
  script: python(`
import os
open('src/new', 'w').write('SECRET')
os.link('src/new', 'memory/new.md')
os.unlink('src/new')
print(open('memory/new.md').read(), os.stat('memory/new.md').st_nlink)`),
  prints: 'SECRET 1\n',
  lower: { 'src/new': null, 'memory/new.md': null },
});

inWindow('a held file exchanged with an unprotected one is real afterwards', {
  script: python(`${EXCHANGE}
open('tmpab12cd', 'w').write('new')
print(exchange('tmpab12cd', 'README.md'), open('README.md').read())`),
  prints: '0 new\n',
  lower: { 'README.md': 'new', tmpab12cd: '# A workspace\n' },
});

inWindow('a held file with two names has both of them afterwards', {
  script: python(`
import os
open('tmpzz12cd', 'w').write('text')
os.link('tmpzz12cd', 'tmpzz12ce')
os.rename('tmpzz12cd', 'plain.txt')
print(open('plain.txt').read(), open('tmpzz12ce').read())`),
  prints: 'text text\n',
  lower: { 'plain.txt': 'text', tmpzz12ce: 'text' },
});

sameAsPlain(
  'setuid and setgid survive a rename and a link of a protected file, and a copy within one file works',
  python(`
import os, time
open('.MEMORY.md.tmp', 'w').close(); os.chmod('.MEMORY.md.tmp', 0o6755)
os.rename('.MEMORY.md.tmp', 'MEMORY.md'); print(oct(os.stat('MEMORY.md').st_mode))
os.link('MEMORY.md', 'memory/again.md'); print(oct(os.stat('MEMORY.md').st_mode), os.stat('MEMORY.md').st_nlink)
for path in ['src/copy', 'memory/copy']:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, b'0123456789' * 500); os.pread(fd, 10, 0); time.sleep(0.2)
    print(os.copy_file_range(fd, fd, 10, 0, 4000), os.pread(fd, 12, 4000))`),
);

sameAsPlain(
  'four thousand files that are open and unlinked can all be read and written',
  python(`
import os
os.mkdir('src/many')
files = []
for i in range(4000):
    fd = os.open(f'src/many/{i}', os.O_RDWR | os.O_CREAT); os.write(fd, b'%d' % i); files.append(fd)
for i in range(4000): os.unlink(f'src/many/{i}')
bad = [i for i, fd in enumerate(files) if os.pread(fd, 10, 0) != b'%d' % i or os.pwrite(fd, b'x', 20) != 1]
print(bad, os.fstat(files[0]).st_nlink)`),
);

withWorkspace(
  'fifteen hundred files read one after another are no trouble where 1,024 may be open',
  async (workspace) => {
    const script =
      'mkdir many; i=0; while [ $i -lt 1500 ]; do echo $i > many/f$i; i=$((i+1)); done; cat many/f* | wc -l';
    const result = await runWatched(
      [
        'prlimit',
        '--nofile=1024:1024',
        forgetFor(workspace.user),
        'exec',
        '--quiet',
        '--',
        'sh',
        '-c',
        script,
      ],
      { user: workspace.user, cwd: workspace.path, timeout: 60_000 },
    );
    assert.equal(result.stdout, '1500\n', result.stderr);
  },
);

sameAsPlain(
  'a default ACL is handed down to files and directories, and leaves the umask out',
  `umask 077; for d in memory src; do mkdir $d/acl; setfacl -d -m u:$(id -u):rwx,g::r-x,o::--- $d/acl
touch $d/acl/f; mkdir $d/acl/sub; touch $d/acl/sub/g; getfacl -n $d/acl/f $d/acl/sub $d/acl/sub/g; done`,
);

// Only root can give the user such a group.
if (process.getuid!() === 0) {
  withWorkspace(
    'an ordinary user writes to files of a supplementary group',
    async (workspace) => {
      const { path } = workspace;
      writeFileSync(join(path, 'shared.txt'), 'old\n');
      execFileSync('chown', ['-R', '1001:4242', path]);
      const forget = forgetFor('ordinary');
      const groups = ['setpriv', '--reuid', '1001', '--regid', '1001', '--groups', '4242'];
      const result = await runWatched(
        [
          ...groups,
          forget,
          'exec',
          '--quiet',
          '--',
          'sh',
          '-c',
          'echo new >> shared.txt; cat shared.txt; echo x >> memory/old.md',
        ],
        { user: 'root', cwd: path, timeout: 60_000 },
      );
      assert.equal(result.stdout, 'old\nnew\n', result.stderr);
      assert.equal(result.code, 0, result.stderr);
      assertLower(workspace, { 'shared.txt': 'old\nnew\n' });
      assert.equal(statSync(join(path, 'shared.txt')).gid, 4242);
    },
    { users: ['ordinary'] },
  );
}

inWindow('link counts are those of the view', {
  script: python(`
import os
fd = os.open('memory/old.md', os.O_RDONLY); os.unlink('memory/old.md'); print(os.fstat(fd).st_nlink)
before = os.stat('memory').st_nlink; os.mkdir('memory/sub'); print(os.stat('memory').st_nlink - before)
os.rmdir('memory/sub'); print(os.stat('memory').st_nlink - before)
print(os.stat('memory/people/ada.md').st_nlink); os.unlink('memory/people/ada.md')
print(os.stat('memory/people/ada-again.md').st_nlink)
os.rename('memory/empty.md', 'src/lib/util.py'); print(os.stat('src/lib/util-again.py').st_nlink)`),
  prints: '0\n1\n0\n2\n1\n1\n',
});

/** Waits for a file that the program inside makes; fails with what it printed if it ends without. */
async function untilReady(file: string, inside: Promise<RunResult>): Promise<void> {
  const early = inside.then(({ stdout, stderr }) => assert.fail(`it ended early: ${stdout}${stderr}`));
  while (!existsSync(file)) await Promise.race([delay(20), early]);
  early.catch(() => {});
}

/** Runs a program inside that says `ready` by a file, changes the lower from outside, and lets it go on. */
function changedOutside(
  title: string,
  program: string,
  change: (path: (name: string) => string) => void,
  prints: string,
) {
  withWorkspace(title, async (workspace) => {
    const path = (name: string) => join(workspace.path, name);
    const inside = forgetExec(workspace, [
      'python3',
      '-c',
      `
import os, time
def ready():
    open('ready', 'w').close()
    while not os.path.exists('changed'): time.sleep(0.02)
    time.sleep(0.3)
time.sleep(0.2)
${program}`,
    ]);
    await untilReady(path('ready'), inside);
    change(path);
    writeFileSync(path('changed'), '');
    const { stdout, stderr } = await inside;
    assert.equal(stdout, prints, stderr);
  });
}

changedOutside(
  'an empty directory that was listed inside shows what is made in it outside',
  `os.mkdir('src/vacant'); print(os.listdir('src/vacant')); ready(); print(os.listdir('src/vacant'))`,
  (path) => writeFileSync(path('src/vacant/new'), ''),
  "[]\n['new']\n",
);

changedOutside(
  'a log that is rotated outside while it is open inside takes the writes of its holder',
  `log = open('src/log', 'a'); log.write('one\\n'); log.flush(); time.sleep(0.3); ready()
log.write('two\\n'); log.flush(); print(open('src/log.1').read().split(), open('src/log').read().split())`,
  (path) => {
    renameSync(path('src/log'), path('src/log.1'));
    writeFileSync(path('src/log'), 'fresh\n');
  },
  "['one', 'two'] ['fresh']\n",
);

withWorkspace(
  'a directory moved outside to a protected place is protected inside from then on',
  async (workspace) => {
    const path = (name: string) => join(workspace.path, name);
    mkdirSync(path('src/d'));
    writeFileSync(path('src/d/k'), 'old');
    const inside = forgetExec(workspace, [
      'python3',
      '-c',
      `
import os, time
held = open('src/d/k', 'r+'); held.read()
open('ready', 'w').close()
while not os.path.exists('changed'): time.sleep(0.02)
time.sleep(0.3)
with open('memory/d/k', 'r+') as again: again.write('LEAK')
print(open('memory/d/k').read())`,
    ]);
    await untilReady(path('ready'), inside);
    renameSync(path('src/d'), path('memory/d'));
    writeFileSync(path('changed'), '');
    const { stdout, stderr } = await inside;
    assert.equal(stdout, 'LEAK\n', stderr);
    assertLower(workspace, { 'memory/d/k': 'old' });
    rmSync(path('memory/d'), { recursive: true });
  },
  { users: ['root'] },
);

sameAsPlain(
  'a directory counts the subdirectories of the view, also when those of the lower moved or went',
  python(`
import os
count = lambda path: print(path, os.stat(path).st_nlink)
count('memory'); os.rename('memory/people', 'memory.jsonl'); count('memory'); count('.')
os.rename('memory.jsonl', 'memory/people'); count('memory')
os.rename('memory/people', 'memory/deep/people'); count('memory'); count('memory/deep')
os.mkdir('memory/people'); count('memory'); os.rmdir('memory/people'); count('memory')
os.unlink('memory/.hidden/note.md'); os.rmdir('memory/.hidden'); count('memory')`),
);

sameAsPlain(
  'a chown that changes no owner moves the ctime and takes setuid away',
  python(`
import os, time
for path in ['src/tool.sh', 'memory/run.sh', 'src/lib', 'memory/people']:
    os.chmod(path, 0o4755); before = os.stat(path); time.sleep(0.02); os.chown(path, -1, -1); after = os.stat(path)
    print(path, oct(after.st_mode), after.st_ctime_ns > before.st_ctime_ns, after.st_mtime_ns == before.st_mtime_ns)
os.mkdir('src/lib/x.jsonl'); before = os.stat('src/lib'); time.sleep(0.02); os.chown('src/lib', -1, os.getgid())
print(os.stat('src/lib').st_ctime_ns > before.st_ctime_ns)`),
);

inWindow('two protected directories with lower content change places', {
  script: python(`${EXCHANGE}
print(exchange('memory/people', 'memory/deep/a'), sorted(os.listdir('memory/people')), sorted(os.listdir('memory/deep/a')))
print(exchange('memory/people', 'memory/old.md'), os.path.isdir('memory/old.md'), os.stat('memory').st_nlink)`),
  prints: "0 ['b'] ['ada-again.md', 'ada.md', 'charles.md']\n0 True 5\n",
});

inWindow('no two files of the view have one inode number, though the lower gives numbers out again', {
  script: python(`
import os
seen = {}
for i in range(20):
    open('src/born', 'w').close(); os.rename('src/born', f'memory/born{i}')
    open(f'src/real{i}', 'w').close()
paths = [f'memory/born{i}' for i in range(20)] + [f'src/real{i}' for i in range(20)]
print(len({os.stat(path).st_ino for path in paths}))
print(len({entry.inode() for top in ('src', 'memory') for entry in os.scandir(top) if entry.name[:4] in ('born', 'real')}))`),
  prints: '40\n40\n',
});

inWindow('an attribute that cannot be set or removed is no reason to copy a file up', {
  script: python(`
import errno, os
before = os.stat('memory/old.md').st_ctime_ns
def tried(what, *args):
    try: what('memory/old.md', *args)
    except OSError as e: print(errno.errorcode[e.errno])
tried(os.removexattr, 'user.none'); tried(os.setxattr, 'user.origin', b'', os.XATTR_CREATE)
tried(os.setxattr, 'user.none', b'', os.XATTR_REPLACE)
print(os.stat('memory/old.md').st_ctime_ns == before)`),
  prints: 'ENODATA\nEEXIST\nENODATA\nTrue\n',
});

sameAsPlain(
  'a range of a protected file is zeroed, and the file grows by it',
  python(`
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def zero(path, mode, at, length):
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    result = libc.fallocate(fd, mode, ctypes.c_long(at), ctypes.c_long(length))
    print(path, result, os.fstat(fd).st_size, os.pread(fd, 40, 0))
for path in ['memory/old.md', 'src/main.py', 'memory/new', 'src/new']:
    zero(path, 16, 3, 10); zero(path, 16, 5, 5000); zero(path, 17, 100, 10000)`),
);

sameAsPlain(
  'a setgid directory hands its group down, and a file keeps the setuid and setgid that it was made with',
  python(`
import os
for top in ('src', 'memory'):
    os.mkdir(f'{top}/g'); os.chmod(f'{top}/g', 0o2777); os.umask(0o077)
    os.close(os.open(f'{top}/g/file', os.O_CREAT | os.O_WRONLY, 0o6755)); os.mkdir(f'{top}/g/dir', 0o1755)
    os.umask(0)
    os.close(os.open(f'{top}/g/open', os.O_CREAT | os.O_WRONLY, 0o6755)); os.mkdir(f'{top}/g/wide')
    os.symlink('file', f'{top}/g/link'); os.mkfifo(f'{top}/g/fifo', 0o644)
    for name in sorted(os.listdir(f'{top}/g')): print(name, oct(os.lstat(f'{top}/g/{name}').st_mode))`),
);

sameAsPlain(
  'what is made in a protected setgid directory has its group, and keeps setuid, setgid and the mode of a default ACL',
  python(`
import os, subprocess
os.umask(0o022)
for directory in ['src/shared', 'memory/shared']:
    os.mkdir(directory)
    if os.getuid() == 0: os.chown(directory, -1, 4321)
    os.chmod(directory, 0o2775)
    def shown(name):
        st = os.stat(f'{directory}/{name}'); print(name, oct(st.st_mode), st.st_gid)
    for mode in [0o2755, 0o4711, 0o6755, 0o2644]:
        os.close(os.open(f'{directory}/{mode:o}', os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)); shown(f'{mode:o}')
    os.mknod(f'{directory}/fifo', 0o12755); shown('fifo')
    os.mkdir(f'{directory}/below', 0o777); shown('below')
    subprocess.run(['setfacl', '-d', '-m', 'g::rwx', directory], check=True)
    os.mkdir(f'{directory}/acl', 0o777); shown('acl')`),
);

function directoryWith(workspace: string, directory: string, name: string): void {
  const { uid, gid } = statSync(workspace);
  const at = join(workspace, directory);
  mkdirSync(at);
  writeFileSync(join(at, name), 'old\n');
  for (const path of [at, join(at, name)]) chownSync(path, uid, gid);
}

for (const [how, make] of [
  ['written', 'echo new >src/was'],
  ['moved there', 'echo new >other; mv other src/was'],
  ['linked there', 'echo new >other; ln other src/was'],
]) {
  inWindow(
    `a file ${how} where a directory was whose files moved to protected names is real, and they are kept beside`,
    {
      shape: {
        prepare: (path) => directoryWith(path, 'src/was', 'draft.md'),
      },
      script: `mv src/was/draft.md memory/; rmdir src/was; ${make}; cat src/was memory/draft.md; ls src | grep was`,
      prints: 'new\nold\nwas\n',
      lower: { 'src/was': 'new\n', 'src/was.before-forget-1/draft.md': 'old\n', 'memory/draft.md': null },
    },
  );
}

inWindow(
  'a file where a directory was that holds protected files in the lower stays in the window, as they do',
  {
    shape: {
      prepare: (path) => directoryWith(path, 'src/was', 'log.jsonl'),
    },
    script: 'rm -r src/was; echo new >src/was; cat src/was',
    prints: 'new\n',
    lower: { 'src/was/log.jsonl': 'old\n' },
  },
);

inWindow(
  'an exempt file in a protected directory that was removed and made anew is real, and the rest stays hidden',
  {
    exec: { options: ['--quiet', '--exempt', '/memory/real.txt', '--exempt', '/memory/sub/real.txt'] },
    script: `rm -r memory; mkdir -p memory/sub; echo a >memory/real.txt; echo b >memory/sub/real.txt; echo c >memory/caught
ls memory memory/sub; cat memory/real.txt memory/sub/real.txt`,
    prints: 'memory:\ncaught\nreal.txt\nsub\n\nmemory/sub:\nreal.txt\na\nb\n',
    isProtected: (path) => isProtectedByDefault(path) && !/^memory(\/sub)?(\/real.txt)?$/.test(path),
    lower: { 'memory/real.txt': 'a\n', 'memory/sub/real.txt': 'b\n', 'memory/caught': null },
  },
);

inWindow('an exchange that is refused leaves its file in the workspace: what is written to it then is real', {
  script: `${python(`
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
r = libc.renameat2(-100, b"src/main.py", -100, b"memory", 2)
print(r, os.strerror(ctypes.get_errno()))
open("src/main.py", "a").write("# real\\n")
`)}`,
  prints: '-1 Invalid cross-device link\n',
  afterwards: (workspace) =>
    assert.match(readFileSync(join(workspace.path, 'src/main.py'), 'utf8'), /# real\n$/),
});

/** Before its last change, so that a read by anybody would move it (relatime). */
const LONG_AGO = new Date('2020-01-01T00:00:00Z');

inWindow('a protected file that is looked up and then read keeps its access time', {
  shape: {
    prepare: (path) => utimesSync(join(path, 'MEMORY.md'), LONG_AGO, statSync(join(path, 'MEMORY.md')).mtime),
  },
  script: 'ls -l MEMORY.md >/dev/null; cat MEMORY.md >/dev/null; echo read',
  prints: 'read\n',
  afterwards: (workspace) => assert.deepEqual(statSync(join(workspace.path, 'MEMORY.md')).atime, LONG_AGO),
});

for (const directory of ['src/many', 'memory']) {
  inWindow(
    `who begins to list ${directory} after a removal does not meet the name in what an older reader is told`,
    {
      script: python(`
import os
os.makedirs("${directory}", exist_ok=True)
for n in range(20): open(f"${directory}/still{n}", "w").close()
os.listdir("${directory}")
open("${directory}/last", "w").close()
old = os.scandir("${directory}")
names = [next(old).name]
os.unlink("${directory}/last")
new = os.scandir("${directory}")
listed = [next(new).name]
names += [entry.name for entry in old]
listed += [entry.name for entry in new]
print("last" in names, sorted(listed) == sorted(os.listdir("${directory}")), "last" in listed)
`),
      prints: 'True True False\n',
    },
  );
}
