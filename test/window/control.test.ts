import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { abstractListeners, connectAbstract } from '../../src/sys/unix-socket.ts';
import { descendsFrom } from '../../src/window/ancestry.ts';
import {
  type ControlHandlers,
  type ControlServer,
  listWindows,
  request,
  serveControl,
  type WindowStatus,
} from '../../src/window/control.ts';
import { newId } from '../../src/window/window-id.ts';
import { asUser, checkout, environmentOf, ORDINARY_ID, temporaryDirectory } from '../harness/users.ts';

const limit = { timeout: 20_000 };
const self = process.getuid!();
const isRoot = self === 0;
const strangerId = 1002;

function statusOf(id: string): WindowStatus {
  return {
    id,
    kind: 'exec',
    pid: process.pid,
    workspace: '/ws',
    roots: [],
    mountpoint: '/ws',
    since: '2026-01-02T03:04:05.000Z',
    command: ['sh', '-c', 'é'],
    caught: { written: 1, created: 2, deleted: 3, renamed: 4, bytes: 5 },
    upper: { used: 6, limit: 7, noswap: true },
    requests: { LOOKUP: 8 },
    notifications: 12,
    memory: { rss: 9, nodes: 10, descriptors: 11 },
    user: 'root',
    namespace: 'own',
    windows: [],
  };
}

async function withWindow(
  use: (id: string, server: ControlServer) => Promise<void>,
  options: { handlers?: Partial<ControlHandlers>; peerIsInside?: (pid: number) => boolean } = {},
): Promise<void> {
  const id = newId();
  const server = await serveControl({
    id,
    handlers: { status: () => statusOf(id), unmount: async () => ({ lines: [] }), ...options.handlers },
    peerIsInside: options.peerIsInside ?? (() => false),
  });
  try {
    await use(id, server);
  } finally {
    server.close();
  }
}

function connectionTo(id: string): Socket {
  return new Socket({ fd: connectAbstract(`forget/${self}/${id}`), readable: true, writable: true });
}

const listens = (id: string, uid = self) => abstractListeners().includes(`forget/${uid}/${id}`);

/** What a client that writes `lines` is answered. */
async function talk(id: string, lines: string): Promise<unknown[]> {
  const socket = connectionTo(id);
  socket.setEncoding('utf8');
  socket.end(lines);
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as unknown);
}

test('a running window is listed with its status, and no longer after it closed', limit, async () => {
  let seen = '';
  await withWindow(async (id) => {
    seen = id;
    assert.deepEqual(
      (await listWindows()).filter((window) => window.id === id),
      [statusOf(id)],
    );
    assert.deepEqual(await request(id, 'status', {}), statusOf(id));
    assert.equal(listens(id), true);
  });
  assert.deepEqual(
    (await listWindows()).filter((window) => window.id === seen),
    [],
  );
  assert.equal(listens(seen), false);
  await assert.rejects(request(seen, 'status', {}), {
    name: 'Failure',
    message: `no window ${seen}; forget status lists those there are`,
  });
});

test('unmount reaches the window, and its failure comes back as one line', limit, async () => {
  const asked: boolean[] = [];
  await withWindow(
    async (id) => {
      assert.deepEqual(await request(id, 'unmount', { force: true }), { lines: ['2 files caught'] });
      await assert.rejects(request(id, 'unmount', { force: false }), {
        name: 'Failure',
        message: `window ${id}: in use by vim`,
      });
    },
    {
      handlers: {
        unmount: async ({ force }) => {
          asked.push(force);
          if (!force) throw new Error('in use by vim');
          return { lines: ['2 files caught'] };
        },
      },
    },
  );
  assert.deepEqual(asked, [true, false]);
});

test('a process inside the window may ask how it stands, and may not close it', limit, async () => {
  const peers: number[] = [];
  let unmounted = false;
  await withWindow(
    async (id) => {
      assert.equal((await request(id, 'status', {})).id, id);
      await assert.rejects(request(id, 'unmount', { force: true }), /inside the window may not close it/);
    },
    {
      handlers: {
        unmount: async () => {
          unmounted = true;
          return { lines: [] };
        },
      },
      peerIsInside: (pid) => {
        peers.push(pid);
        return true;
      },
    },
  );
  assert.equal(unmounted, false);
  assert.deepEqual(peers, [process.pid]);
});

test('a process that another started, directly or through others, descends from it', limit, async () => {
  const child = spawn('sh', ['-c', 'sh -c "echo \\$\\$; sleep 20; :"; :'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  try {
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const grandchild = Number(line);
    assert.equal(descendsFrom(grandchild, process.pid), true);
    assert.equal(descendsFrom(grandchild, grandchild), true);
    assert.equal(descendsFrom(process.pid, grandchild), false);
    assert.equal(descendsFrom(process.pid, 2 ** 22 + 1), false);
  } finally {
    process.kill(-child.pid!, 'SIGKILL');
  }
});

test('requests that are no JSON, unknown or endless are refused, and the window goes on', limit, async () => {
  await withWindow(async (id) => {
    const answers = (await talk(id, '{nonsense\nnull\n7\n{"method":"keep"}\n{"method":"status"}\n')) as {
      error?: { code: string };
      result?: unknown;
    }[];
    const codes = answers.map((answer) => answer.error?.code ?? 'result').sort();
    assert.deepEqual(codes, ['malformed', 'result', 'unknown', 'unknown', 'unknown']);

    const endless = connectionTo(id);
    endless.on('error', () => {});
    endless.write('x'.repeat(200_000));
    await new Promise<void>((resolve) => endless.once('close', () => resolve()));
    assert.equal(
      (await listWindows()).some((window) => window.id === id),
      true,
    );
  });
});

test('a window that is closed before anyone asked it is closed all the same', limit, async () => {
  let seen = '';
  await withWindow(async (id) => {
    seen = id;
  });
  assert.equal(listens(seen), false);
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(listens(seen), false);
});

test('a name that is taken is a clear error', limit, async () => {
  await withWindow(async (id) => {
    const again = serveControl({
      id,
      handlers: { status: () => statusOf(id), unmount: async () => ({ lines: [] }) },
      peerIsInside: () => false,
    });
    await assert.rejects(again, {
      name: 'Failure',
      message: `the control socket @forget/${self}/${id} gave EADDRINUSE`,
    });
  });
});

test('an answer that is no status is not listed', limit, async () => {
  const { caught: _, ...partial } = statusOf('');
  for (const answer of [null, 7, partial, { ...statusOf(''), command: [7] }]) {
    await withWindow(
      async (id) => {
        const silent: string[] = [];
        const windows = await listWindows((name) => silent.push(name));
        assert.deepEqual(
          windows.filter((window) => window.id === id),
          [],
        );
        assert.ok(silent.includes(id));
      },
      { handlers: { status: () => answer as never } },
    );
  }
});

const tsx = import.meta.resolve('tsx');

/** A window of another process, which has also started `sleep`, to be killed. `before` goes before its command line. */
async function withOtherWindow(
  use: (window: { id: string; pid: number; sleeper: number; child: ChildProcess }) => Promise<void>,
  before: readonly string[] = [],
): Promise<void> {
  const script = `
    const { serveControl } = await import(${JSON.stringify(join(checkout, 'src/window/control.ts'))});
    const { newId } = await import(${JSON.stringify(join(checkout, 'src/window/window-id.ts'))});
    const { spawn } = await import('node:child_process');
    const id = newId();
    const status = { ...${JSON.stringify(statusOf(''))}, id, pid: process.pid };
    await serveControl({ id, handlers: { status: () => status, unmount: async () => ({ lines: [] }) }, peerIsInside: () => false });
    await new Promise((resolve) => setTimeout(resolve, 100));
    const sleeper = spawn('sleep', ['20'], { stdio: 'ignore' });
    console.log(JSON.stringify({ id, pid: process.pid, sleeper: sleeper.pid }));
    setInterval(() => {}, 1000);
  `;
  const line = [...before, process.execPath, '--import', tsx, '--input-type=module', '-e', script];
  const child = spawn(line[0]!, line.slice(1), { cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] });
  let sleeper = 0;
  try {
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    const window = JSON.parse(said.toString()) as { id: string; pid: number; sleeper: number };
    sleeper = window.sleeper;
    await use({ ...window, child });
  } finally {
    child.kill('SIGKILL');
    if (sleeper > 0) process.kill(sleeper, 'SIGKILL');
  }
}

/** The names of a process's Unix sockets, as /proc/net/unix has them. */
function socketNames(pid: number): string[] {
  const inodes = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
    } catch {
      return []; // closed meanwhile
    }
  });
  const named = /^\S+ \S+ \S+ \S+ \S+ \S+ +(\d+) (.+)$/gm;
  return [...readFileSync('/proc/net/unix', 'latin1').matchAll(named)]
    .filter(([, inode]) => inodes.includes(inode!))
    .map(([, , name]) => name!);
}

test(
  'a killed window leaves nothing: its one socket has no file, and goes with it though its children live on',
  limit,
  async () => {
    await withOtherWindow(async ({ id, pid, sleeper, child }) => {
      assert.deepEqual(socketNames(pid), [`@forget/${self}/${id}`]);
      assert.deepEqual(socketNames(sleeper), []);
      assert.equal((await request(id, 'status', {})).pid, pid);

      child.kill('SIGKILL');
      await once(child, 'exit');
      assert.equal(readFileSync('/proc/net/unix', 'latin1').includes(id), false);
      assert.doesNotThrow(() => process.kill(sleeper, 0));
      assert.equal(
        (await listWindows()).some((window) => window.id === id),
        false,
      );
      await assert.rejects(request(id, 'status', {}), /no window .*forget status lists/);
    });
  },
);

test('a stopped window is named and not waited for, and once it goes on it is listed', limit, async () => {
  await withOtherWindow(async ({ id, child }) => {
    child.kill('SIGSTOP');
    const silent: string[] = [];
    const start = performance.now();
    const listed = await listWindows((name) => silent.push(name));
    assert.ok(performance.now() - start < 5000);
    assert.ok(silent.includes(id));
    assert.equal(
      listed.some((window) => window.id === id),
      false,
    );
    await assert.rejects(request(id, 'status', {}), { message: `window ${id} does not answer` });

    child.kill('SIGCONT');
    assert.equal((await request(id, 'status', {})).id, id);
  });
});

/** For programs of strangers: a python of root's home is out of their reach. */
const strangers = {
  cwd: '/',
  stdio: ['ignore', 'pipe', 'inherit'] as ['ignore', 'pipe', 'inherit'],
  env: environmentOf('ordinary'),
};

/** Python's, so that nothing of forget is on the stranger's side. Prints what it was answered. */
const asker = `
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(5)
s.connect("\\0" + sys.argv[1])
try:
    s.sendall(b'{"method":"status"}\\n')
    print("answered" if s.recv(1000) else "refused")
except OSError:
    print("refused")
`;

function asAny(uid: number, argv: readonly string[]): string[] {
  return ['setpriv', '--reuid', String(uid), '--regid', String(uid), '--clear-groups', '--', ...argv];
}

/** What the window of `owner` does with a request of `uid`: asynchronously, since it may be this process's own. */
async function answerFor(uid: number, owner: number, id: string): Promise<string> {
  const [program, ...line] = asAny(uid, ['python3', '-c', asker, `forget/${owner}/${id}`]);
  const child = spawn(program!, line, strangers);
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  await once(child, 'close');
  return text.trim();
}

if (isRoot) {
  test("another user is not answered by root's window", limit, async () => {
    await withWindow(async (id) => {
      assert.equal(await answerFor(0, 0, id), 'answered');
      assert.equal(await answerFor(ORDINARY_ID, 0, id), 'refused');
    });
  });

  for (const [place, within] of [
    ['', []],
    [' in a user namespace', ['unshare', '--user', '--mount', '--map-current-user', '--keep-caps', '--']],
  ] as const) {
    test(
      `a user's window${place} is found and answered for its user and root, and for nobody else`,
      limit,
      async () => {
        await withOtherWindow(
          async ({ id }) => {
            assert.equal(await answerFor(ORDINARY_ID, ORDINARY_ID, id), 'answered');
            assert.equal(await answerFor(strangerId, ORDINARY_ID, id), 'refused');
            assert.deepEqual(
              (await listWindows()).filter((window) => window.id === id).map((window) => window.id),
              [id],
            );
            assert.equal((await request(id, 'status', {})).id, id);
            assert.equal(process.geteuid!(), 0);
          },
          asUser('ordinary', within),
        );
      },
    );
  }

  test('nobody, who looks like every stranger in a user namespace, lets no stranger in', limit, async () => {
    const nobody = 65534;
    const before = asAny(nobody, ['unshare', '--user', '--map-current-user', '--']);
    await withOtherWindow(async ({ id }) => {
      assert.equal(listens(id, nobody), true);
      assert.equal(await answerFor(strangerId, nobody, id), 'refused');
    }, before);
  });

  test("a name that another user has bound in root's or a user's place is not believed", limit, async () => {
    const ids = [newId(), newId()];
    const names = [`forget/0/${ids[0]}`, `forget/${ORDINARY_ID}/${ids[1]}`];
    const squatter = `
import json, select, socket, sys
listening = []
for name in sys.argv[2:]:
    s = socket.socket(socket.AF_UNIX)
    s.bind("\\0" + name)
    s.listen()
    listening.append(s)
print("ready", flush=True)
while True:
    for s in select.select(listening, [], [])[0]:
        c, _ = s.accept()
        # Who does not believe it hangs up, perhaps before the answer.
        try: c.sendall(json.dumps({"result": json.loads(sys.argv[1])}).encode() + b"\\n")
        except ConnectionError: pass
`;
    const [program, ...line] = asAny(strangerId, [
      ...['python3', '-c', squatter, JSON.stringify(statusOf(ids[0]!)), ...names],
    ]);
    const child = spawn(program!, line, strangers);
    try {
      await once(child.stdout, 'data');
      for (const name of names) assert.ok(abstractListeners().includes(name));
      const silent: string[] = [];
      const listed = (await listWindows((id) => silent.push(id))).map((window) => window.id);
      for (const id of ids) {
        assert.equal(listed.includes(id), false);
        assert.equal(silent.includes(id), false);
        await assert.rejects(request(id, 'status', {}), /^Failure: no window /);
      }
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('the same tests of the socket hold for an ordinary user', { timeout: 60_000 }, () => {
    const file = join(checkout, 'test/window/control.test.ts');
    const top = temporaryDirectory('control', 'ordinary');
    const [program, ...line] = asUser('ordinary', [process.execPath, '--import', tsx, '--test', file]);
    const { status, stdout } = spawnSync(program!, line, {
      cwd: checkout,
      encoding: 'utf8',
      env: environmentOf('ordinary', { TMPDIR: top }),
    });
    assert.equal(status, 0, stdout);
    rmSync(top, { recursive: true, force: true });
  });
}
