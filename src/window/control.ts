/**
 * The control socket of a window, and its clients. One request a line, one answer a line, both JSON:
 *
 *   {"method":"status","params":{}}       {"result":{...}}
 *   {"method":"unmount","params":{}}      {"error":{"code":"refused","message":"..."}}
 *
 * The window answers its own user and root, whom the kernel names (SO_PEERCRED); what would weaken it is refused
 * to a process inside it.
 */
import type { Socket } from 'node:net';
import { Failure } from './failure.ts';
import {
  closeRegistry,
  forgetSocket,
  openRegistries,
  openRegistry,
  pidOf,
  type Registry,
  registeredIds,
  socketAddress,
  socketAge,
} from './registry.ts';

/** What a window says of itself. Names are made readable; sizes are bytes. */
export interface WindowStatus {
  id: string;
  kind: 'exec' | 'mount';
  pid: number;
  workspace: string;
  mountpoint: string;
  /** ISO 8601. */
  since: string;
  command?: string[];
  caught: { written: number; created: number; deleted: number; renamed: number; bytes: number };
  upper: { used: number; limit: number; noswap: boolean };
  /** Requests served, by opcode name. */
  requests: Record<string, number>;
  memory: { rss: number; nodes: number; descriptors: number };
  user: 'root' | 'user';
  namespace: 'own' | 'shared';
}

export interface ControlMethods {
  status: { params: Record<string, never>; result: WindowStatus };
  unmount: { params: { force: boolean }; result: { lines: string[] } };
}
export type ControlMethod = keyof ControlMethods;

export interface ControlHandlers {
  status(): WindowStatus | Promise<WindowStatus>;
  unmount(params: { force: boolean }): Promise<{ lines: string[] }>;
}

export interface ControlServer {
  /** Removes the socket and ends its connections. */
  close(): void;
}

export interface ControlOptions {
  /** The window's id, from `newId()` in registry.ts. */
  id: string;
  handlers: ControlHandlers;
  /** Is this process inside the window? Then it may ask, and not unmount. */
  peerIsInside(pid: number): boolean;
  /** Opened before a mount that may cover its path; by default opened now. */
  registry?: Registry;
}

type Answer = { result: unknown } | { error: { code: string; message: string } };

const longestRequest = 64 * 1024;
const longestAnswer = 4 * 1024 * 1024;
/** For a window that is stopped, or whose main thread waits. */
const answerWithin = 2000;

/** Resolves once the socket can be connected to. It does not keep the process alive. */
export async function serveControl(options: ControlOptions): Promise<ControlServer> {
  const [{ createServer }, { peerOf }] = await Promise.all([import('node:net'), import('../sys/peer.ts')]);
  const registry = options.registry ?? openRegistry();
  const connections = new Set<Socket>();
  const server = createServer((socket) => {
    // Node has no public accessor for an accepted socket's descriptor.
    const fd = (socket as unknown as { _handle: { fd: number } })._handle.fd;
    const peer = peerOf(fd);
    if (typeof peer === 'number' || (peer.uid !== 0 && peer.uid !== process.getuid!())) {
      socket.destroy();
      return;
    }
    socket.unref();
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    // A client that went away needs no answer.
    socket.on('error', () => socket.destroy());
    onLines(socket, longestRequest, async (line) => {
      const answer = await answerTo(line, peer.pid, options);
      if (!socket.destroyed) socket.write(`${JSON.stringify(answer)}\n`);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketAddress(registry, options.id), resolve);
  });
  server.unref();
  await removeGone(registry);
  return {
    close() {
      server.close();
      for (const socket of connections) socket.destroy();
      forgetSocket(registry, options.id);
      closeRegistry(registry);
    },
  };
}

async function answerTo(line: string, pid: number, options: ControlOptions): Promise<Answer> {
  let request: { method?: unknown; params?: { force?: unknown } | null };
  try {
    request = Object(JSON.parse(line));
  } catch {
    return { error: { code: 'malformed', message: 'a request is one line of JSON' } };
  }
  try {
    if (request.method === 'status') return { result: await options.handlers.status() };
    if (request.method === 'unmount') {
      if (options.peerIsInside(pid)) {
        return { error: { code: 'refused', message: 'a process inside the window may not close it' } };
      }
      return { result: await options.handlers.unmount({ force: request.params?.force === true }) };
    }
    return { error: { code: 'unknown', message: `no such request: ${String(request.method)}` } };
  } catch (error) {
    return { error: { code: 'failed', message: error instanceof Error ? error.message : String(error) } };
  }
}

/** Asks one window. Throws a Failure when there is none of that id, or it refuses, fails or does not answer. */
export async function request<M extends ControlMethod>(
  id: string,
  method: M,
  params: ControlMethods[M]['params'],
): Promise<ControlMethods[M]['result']> {
  const registries = openRegistries();
  try {
    const registry = registries.find((candidate) => registeredIds(candidate).includes(id));
    if (!registry) throw new Failure(`no window ${id}; forget status lists those there are`);
    // Unmounting may wait for the last writes.
    return await ask(registry, id, method, params, method === 'status' ? answerWithin : 60_000);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(`window ${id} is gone (${(error as NodeJS.ErrnoException).code})`);
  } finally {
    registries.forEach(closeRegistry);
  }
}

/**
 * Every window of this user. The socket of a window that is gone is removed; a window that lives and does not
 * answer is handed to `onSilent`.
 */
export async function listWindows(onSilent?: (id: string, pid: number) => void): Promise<WindowStatus[]> {
  const registries = openRegistries();
  try {
    const asked = registries.flatMap((registry) =>
      registeredIds(registry).map(async (id) => {
        try {
          return await ask(registry, id, 'status', {}, answerWithin);
        } catch (error) {
          if (isGone(registry, id, error)) forgetSocket(registry, id);
          else onSilent?.(id, pidOf(id));
          return undefined;
        }
      }),
    );
    return (await Promise.all(asked)).filter((status) => status !== undefined);
  } finally {
    registries.forEach(closeRegistry);
  }
}

/** A window that was killed cannot remove its socket: the next one does. Live windows are not asked, and cost nothing. */
async function removeGone(registry: Registry): Promise<void> {
  await Promise.all(
    registeredIds(registry)
      .filter((id) => !isRunning(pidOf(id)))
      .map(async (id) => {
        try {
          await ask(registry, id, 'status', {}, answerWithin);
        } catch (error) {
          if (isGone(registry, id, error)) forgetSocket(registry, id);
        }
      }),
  );
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's process may not be signalled, and is one.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/**
 * Nobody listens, and nobody is about to: the process is no more, or the socket is older than the moment between
 * bind and listen (its pid may be another process's by now). A pid alone tells nothing: a window in another pid
 * namespace has a number that means nothing here.
 */
function isGone(registry: Registry, id: string, error: unknown): boolean {
  if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') return false;
  return !isRunning(pidOf(id)) || socketAge(registry, id) > 5000;
}

async function ask<M extends ControlMethod>(
  registry: Registry,
  id: string,
  method: M,
  params: ControlMethods[M]['params'],
  timeoutMs: number,
): Promise<ControlMethods[M]['result']> {
  const { connect } = await import('node:net');
  const socket = connect(socketAddress(registry, id));
  try {
    const line = await new Promise<string>((resolve, reject) => {
      const silent = () => reject(new Failure(`window ${id} does not answer`));
      socket.setTimeout(timeoutMs, silent);
      socket.once('error', reject);
      socket.once('close', silent);
      onLines(socket, longestAnswer, resolve);
      socket.write(`${JSON.stringify({ method, params })}\n`);
    });
    const answer = JSON.parse(line) as Answer;
    if ('error' in answer) throw new Failure(`window ${id}: ${answer.error.message}`);
    return answer.result as ControlMethods[M]['result'];
  } finally {
    socket.destroy();
  }
}

/** Hands over each line; ends a connection whose line grows past `longest` characters. */
function onLines(socket: Socket, longest: number, line: (text: string) => void): void {
  let pending = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    const lines = (pending + chunk).split('\n');
    pending = lines.pop()!;
    if (pending.length > longest) socket.destroy();
    else lines.forEach(line);
  });
}
