import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { descendsFrom } from '../../src/window/ancestry.ts';
import {
  type ControlHandlers,
  type ControlServer,
  listWindows,
  request,
  serveControl,
  type WindowStatus,
} from '../../src/window/control.ts';
import { closeRegistry, newId, openTrusted, registryPaths } from '../../src/window/registry.ts';
import { checkout, ORDINARY_ID, temporaryDirectory, users } from '../harness/users.ts';

const limit = { timeout: 20_000 };
const isRoot = process.getuid!() === 0;
if (!isRoot) process.env.XDG_RUNTIME_DIR = temporaryDirectory('run', 'ordinary');

function statusOf(id: string): WindowStatus {
  return {
    id,
    kind: 'exec',
    pid: process.pid,
    workspace: '/ws',
    mountpoint: '/ws',
    since: '2026-01-02T03:04:05.000Z',
    command: ['sh', '-c', 'é'],
    caught: { written: 1, created: 2, deleted: 3, renamed: 4, bytes: 5 },
    upper: { used: 6, limit: 7, noswap: true },
    requests: { LOOKUP: 8 },
    memory: { rss: 9, nodes: 10, descriptors: 11 },
    user: 'root',
    namespace: 'own',
  };
}

async function withWindow(
  use: (id: string, server: ControlServer) => Promise<void>,
  options: { handlers?: Partial<ControlHandlers>; peerIsInside?: (pid: number) => boolean } = {},
): Promise<void> {
  const id = newId();
  const server = await serveControl({
    id,
    handlers: { status: () => statusOf(id), unmount: async () => {}, ...options.handlers },
    peerIsInside: options.peerIsInside ?? (() => false),
  });
  try {
    await use(id, server);
  } finally {
    server.close();
  }
}

function socketOf(id: string): string {
  return registryPaths()
    .map((path) => join(path, `${id}.sock`))
    .find(existsSync)!;
}

/** What a client that writes `lines` is answered. */
async function talk(id: string, lines: string): Promise<unknown[]> {
  const socket = connect(socketOf(id));
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
    assert.equal(statSync(socketOf(id)).isSocket(), true);
  });
  assert.deepEqual(
    (await listWindows()).filter((window) => window.id === seen),
    [],
  );
  await assert.rejects(request(seen, 'status', {}), /no window .*forget status lists/);
});

test('unmount reaches the window, and its failure comes back as one line', limit, async () => {
  const asked: boolean[] = [];
  await withWindow(
    async (id) => {
      await request(id, 'unmount', { force: true });
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

    const endless = connect(socketOf(id));
    endless.on('error', () => {});
    endless.write('x'.repeat(200_000));
    await new Promise<void>((resolve) => endless.once('close', () => resolve()));
    assert.equal(
      (await listWindows()).some((window) => window.id === id),
      true,
    );
  });
});

/** A window of another process, for killing. */
async function withOtherWindow(use: (id: string, child: ChildProcess) => Promise<void>): Promise<void> {
  const script = `
    const { serveControl } = await import(${JSON.stringify(join(checkout, 'src/window/control.ts'))});
    const { newId } = await import(${JSON.stringify(join(checkout, 'src/window/registry.ts'))});
    const id = newId();
    await serveControl({ id, handlers: { status: () => ({ id }), unmount: async () => {} }, peerIsInside: () => false });
    console.log(id);
    setInterval(() => {}, 1000);
  `;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    cwd: checkout,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    await use(line.toString().trim(), child);
  } finally {
    child.kill('SIGKILL');
  }
}

test(
  'a stopped window is named and not waited for, and once killed its socket is removed',
  limit,
  async () => {
    await withOtherWindow(async (id, child) => {
      child.kill('SIGSTOP');
      const silent: string[] = [];
      await listWindows((name) => silent.push(name));
      assert.ok(silent.includes(id));
      assert.ok(socketOf(id), 'the socket of a live window was removed');

      child.kill('SIGKILL');
      await once(child, 'exit');
      await listWindows((name) => assert.notEqual(name, id));
      assert.equal(socketOf(id), undefined);
    });
  },
);

test('the next window that opens removes the socket of one that was killed', limit, async () => {
  await withOtherWindow(async (id, child) => {
    child.kill('SIGKILL');
    await once(child, 'exit');
    assert.ok(socketOf(id));
    await withWindow(async () => assert.equal(socketOf(id), undefined));
  });
});

test('a directory for sockets that is a link, or open to others, is not trusted', limit, () => {
  const top = temporaryDirectory('registry', users[0]!);
  try {
    const dir = join(top, 'forget');
    mkdirSync(dir, { mode: 0o700 });
    const trusted = openTrusted(dir);
    assert.notEqual(typeof trusted, 'string');
    if (typeof trusted !== 'string') closeRegistry(trusted);
    chmodSync(dir, 0o750);
    assert.match(openTrusted(dir) as string, /mode 750/);
    symlinkSync('forget', join(top, 'link'));
    assert.match(openTrusted(join(top, 'link')) as string, /link: (ELOOP|ENOTDIR)/);
    assert.match(openTrusted(join(top, 'absent')) as string, /ENOENT/);
  } finally {
    rmSync(top, { recursive: true });
  }
});

if (!isRoot) {
  test('a registry path longer than a socket address still works', limit, async () => {
    const saved = process.env.XDG_RUNTIME_DIR!;
    const long = join(saved, 'x'.repeat(150));
    mkdirSync(long);
    process.env.XDG_RUNTIME_DIR = long;
    try {
      await withWindow(async (id) => {
        assert.equal(
          (await listWindows()).some((window) => window.id === id),
          true,
        );
      });
    } finally {
      process.env.XDG_RUNTIME_DIR = saved;
    }
  });
}

if (isRoot) {
  test('another user is not answered, even where the directory lets it in', limit, async () => {
    await withWindow(async (id) => {
      const dir = dirname(socketOf(id));
      chmodSync(dir, 0o755);
      chmodSync(socketOf(id), 0o777);
      try {
        const ask = (uid: number) =>
          new Promise<string>((resolve, reject) => {
            const child = spawn(
              'python3',
              [
                '-c',
                'import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ntry:\n s.sendall(b\'{"method":"status"}\\n\')\n print(len(s.recv(1000)))\nexcept OSError: print(0)',
                socketOf(id),
              ],
              { uid, gid: uid, cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] },
            );
            let text = '';
            child.stdout!.on('data', (chunk: Buffer) => {
              text += chunk.toString();
            });
            child.once('error', reject);
            child.once('close', () => resolve(text.trim()));
          });
        assert.equal(await ask(ORDINARY_ID), '0');
        assert.notEqual(await ask(0), '0');
      } finally {
        chmodSync(dir, 0o700);
      }
    });
  });

  test('the same tests of the socket hold for an ordinary user', { timeout: 60_000 }, async () => {
    const top = temporaryDirectory('control', 'ordinary');
    const { status, stdout } = spawnSync(
      process.execPath,
      ['--import', 'tsx', '--test', join(checkout, 'test/window/control.test.ts')],
      {
        cwd: checkout,
        uid: ORDINARY_ID,
        gid: ORDINARY_ID,
        encoding: 'utf8',
        env: { PATH: process.env.PATH, HOME: top, TMPDIR: top },
      },
    );
    assert.equal(status, 0, stdout);
    rmSync(top, { recursive: true, force: true });
  });
}
