// E11, 16 and the table of DESIGN 3 "Renames and links", row by row.
import { inWindow, python } from './window.ts';

const OLD = '# What I know\n\nAda prefers tabs.\n';

/** A rename(2) and nothing else: `mv` would copy where it fails. */
const RENAME = `rename() { python3 -c '
import os, sys, errno
try:
    os.rename(sys.argv[1], sys.argv[2]); print("renamed")
except OSError as e:
    print(errno.errorcode[e.errno])' "$1" "$2"; }
link() { python3 -c '
import os, sys, errno
try:
    os.link(sys.argv[1], sys.argv[2]); print("linked")
except OSError as e:
    print(errno.errorcode[e.errno])' "$1" "$2"; }
`;

inWindow('a protected file renamed to a protected name stays in the upper, and its old name is hidden', {
  script: `${RENAME}rename memory/old.md logs/old.jsonl; cat logs/old.jsonl; ls memory/old.md || true`,
  prints: `renamed\n${OLD}ls: cannot access 'memory/old.md': No such file or directory\n`,
  lower: { 'memory/old.md': OLD, 'logs/old.jsonl': null },
});

inWindow('an unprotected file renamed to an unprotected name is renamed for real', {
  script: `${RENAME}i=$(stat -c %i src/main.py); rename src/main.py docs/moved.py; [ $(stat -c %i docs/moved.py) = $i ] && echo same inode`,
  prints: 'renamed\nsame inode\n',
  lower: { 'src/main.py': null, 'docs/moved.py': "print('hello, world')\n" },
});

inWindow('a file born in the window and renamed to a protected name leaves the lower', {
  script: `${RENAME}echo born > src/born.txt; rename src/born.txt memory/born.md; cat memory/born.md; ls src/born.txt || true`,
  prints: "renamed\nborn\nls: cannot access 'src/born.txt': No such file or directory\n",
  lower: { 'src/born.txt': null, 'memory/born.md': null },
});

inWindow('a file older than the window and renamed onto a protected name is back at its source afterwards', {
  script: `${RENAME}rename README.md DELIVERABLES.md; cat DELIVERABLES.md; ls README.md || true`,
  prints: "renamed\n# A workspace\nls: cannot access 'README.md': No such file or directory\n",
  lower: { 'README.md': '# A workspace\n', 'DELIVERABLES.md': '# Deliverables\n\n1. A report.\n' },
});

inWindow('a name freed by such a rename can be written anew, and that is real', {
  script: `${RENAME}rename README.md memory/readme.md; echo new > README.md; cat README.md memory/readme.md`,
  prints: 'renamed\nnew\n# A workspace\n',
  lower: { 'README.md': 'new\n', 'memory/readme.md': null },
});

inWindow('a protected file renamed to an unprotected name stays protected, and writes to it too', {
  script: `${RENAME}rename memory/old.md src/stolen.md; echo more >> src/stolen.md; cat src/stolen.md; ls memory/old.md || true`,
  prints: `renamed\n${OLD}more\nls: cannot access 'memory/old.md': No such file or directory\n`,
  lower: { 'src/stolen.md': null, 'memory/old.md': OLD },
});

inWindow('a protected file renamed onto an unprotected one hides it, and does not destroy it', {
  script: `${RENAME}rename memory/old.md src/main.py; cat src/main.py; rm src/main.py; ls src/main.py || true`,
  prints: `renamed\n${OLD}ls: cannot access 'src/main.py': No such file or directory\n`,
  lower: { 'src/main.py': "print('hello, world')\n", 'memory/old.md': OLD },
});

inWindow('RENAME_NOREPLACE and RENAME_EXCHANGE keep their meaning', {
  script: python(`
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def rename(a, b, flags):
    r = libc.renameat2(-100, a.encode(), -100, b.encode(), flags)
    print(a, b, flags, "done" if r == 0 else errno.errorcode[ctypes.get_errno()])
rename("src/main.py", "README.md", 1)
rename("src/main.py", "src/fresh.py", 1)
rename("src/fresh.py", "README.md", 2)
print(open("src/fresh.py").read() + open("README.md").read(), end="")
rename("memory/old.md", "memory/people/charles.md", 1)
rename("memory/old.md", "memory/fresh.md", 1)
rename("memory/fresh.md", "memory/people/charles.md", 2)
print(open("memory/fresh.md").read() + open("memory/people/charles.md").read(), end="")
rename("memory/none.md", "memory/fresh.md", 2)
`),
  prints: `src/main.py README.md 1 EEXIST
src/main.py src/fresh.py 1 done
src/fresh.py README.md 2 done
# A workspace
print('hello, world')
memory/old.md memory/people/charles.md 1 EEXIST
memory/old.md memory/fresh.md 1 done
memory/fresh.md memory/people/charles.md 2 done
Charles: engines.
${OLD}memory/none.md memory/fresh.md 2 ENOENT
`,
  lower: { 'README.md': "print('hello, world')\n", 'src/fresh.py': '# A workspace\n', 'src/main.py': null },
});

inWindow('a directory whose files would change class answers EXDEV, and mv moves it all the same', {
  script: `${RENAME}rename src/lib memory/lib; mv src/lib memory/lib; ls memory/lib; ls src/lib || true
rename memory/people src/people; mv memory/people src/people; cat src/people/ada.md; ls memory/people || true`,
  prints: `EXDEV
util-again.py
util.py
ls: cannot access 'src/lib': No such file or directory
EXDEV
Ada: born 1815.
ls: cannot access 'memory/people': No such file or directory
`,
  lower: { 'memory/lib': null, 'src/lib': null, 'src/people/ada.md': 'Ada: born 1815.\n' },
});

inWindow('a directory of code with a log in it moves within the code, and the log stays protected', {
  script: `mkdir src/run && echo '{}' > src/run/t.jsonl && echo code > src/run/x.py && mv src/run docs/run && cat docs/run/t.jsonl docs/run/x.py`,
  prints: '{}\ncode\n',
  lower: { 'docs/run/x.py': 'code\n', 'docs/run/t.jsonl': null, 'src/run': null },
});

inWindow('a directory of code with an old log in it moves, and the lower keeps the log', {
  script: `mv logs docs/logs && cat docs/logs/plain.txt && tail -n 1 docs/logs/a.jsonl && ls logs || true`,
  prints: `not a log of turns\n{"turn": 99}\nls: cannot access 'logs': No such file or directory\n`,
  lower: {
    'docs/logs/plain.txt': 'not a log of turns\n',
    'docs/logs/a.jsonl': null,
    'logs/plain.txt': null,
    'logs/b.jsonl': '{"turn": 0}\n',
  },
});

inWindow('a protected directory with lower content is renamed as a whole', {
  script: `${RENAME}rename memory/people memory/folk; cat memory/folk/ada.md; ls memory/people || true; echo x >> memory/folk/ada.md; cat memory/folk/ada-again.md
mkdir memory/people; ls -A memory/people; rename memory/folk memory/people; ls memory/people`,
  prints: `renamed
Ada: born 1815.
ls: cannot access 'memory/people': No such file or directory
Ada: born 1815.
x
renamed
ada-again.md
ada.md
charles.md
`,
});

inWindow('a link with one protected name sticks to the upper', {
  script: `${RENAME}link memory/old.md src/linked.md; echo more >> src/linked.md; cat memory/old.md; stat -c %h src/linked.md`,
  prints: `linked\n${OLD}more\n2\n`,
  lower: { 'src/linked.md': null },
});

inWindow('a link from code into memory is caught, and the code keeps its content', {
  script: `${RENAME}link README.md memory/linked.md; cat memory/linked.md; echo more >> memory/linked.md; cat README.md`,
  prints: `linked\n# A workspace\n# A workspace\nmore\n`,
  lower: { 'memory/linked.md': null, 'README.md': '# A workspace\n' },
});

inWindow('a link within the code is a real link', {
  script: `${RENAME}link README.md src/linked.md; [ README.md -ef src/linked.md ] && stat -c %h README.md; echo more >> src/linked.md; cat README.md`,
  prints: 'linked\n2\n# A workspace\nmore\n',
  lower: { 'src/linked.md': '# A workspace\nmore\n', 'README.md': '# A workspace\nmore\n' },
});

// 15
inWindow('a file linked right after its birth has one inode and two links under both names', {
  script: `for d in memory src; do echo x > $d/one; ln $d/one $d/two; [ $(stat -c %i $d/one) = $(stat -c %i $d/two) ] && stat -c %h $d/one $d/two; done`,
  prints: '2\n2\n2\n2\n',
  lower: { 'src/two': 'x\n', 'memory/one': null },
});

// 25
inWindow('a file without a name linked into memory lands in the upper, and into the code for real', {
  script: python(`
import errno, os
for directory, name in (("memory", "memory/anonymous.md"), ("src", "src/anonymous.py"), ("src", "memory/crossed.md"), ("memory", "src/crossed.md")):
    try:
        fd = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o644)
    except OSError as e:
        assert e.errno == errno.EOPNOTSUPP, e
        fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        os.write(fd, b"anonymous\\n")
    else:
        os.write(fd, b"anonymous\\n")
        # Python follows the link only where it has a reason to call linkat.
        os.link(f"/proc/self/fd/{fd}", name, src_dir_fd=fd, follow_symlinks=True)
    print(name, open(name).read(), end="")
`),
  prints: `memory/anonymous.md anonymous
src/anonymous.py anonymous
memory/crossed.md anonymous
src/crossed.md anonymous
`,
  lower: { 'memory/anonymous.md': null, 'src/anonymous.py': 'anonymous\n', 'memory/crossed.md': null },
});
