// Random operations in nested windows that open and close in any order, against a model in memory.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { protectedDifferences } from '../harness/forget.ts';
import { type Live, onMount } from './live.ts';
import { type Inode, Model } from './model.ts';

/** More with FORGET_WINDOWS_ROUNDS. */
const ROUNDS = Number(process.env.FORGET_WINDOWS_ROUNDS ?? 6);
const STEPS = 250;
/** Node has no name for it. */
const ESTALE = 116;
const NAMES = ['a', 'b', 'c', 'd'];

/** mulberry32 */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** Files, directories and a symlink of the lower, some of which nobody has looked at before the first window. */
function prepare(path: string): void {
  const memory = join(path, 'memory');
  fs.mkdirSync(join(memory, 'b/c/d'), { recursive: true });
  for (const [name, content] of Object.entries({
    a: 'one ',
    'b/a': 'two ',
    'b/c/a': 'three ',
    'b/c/d/a': 'four ',
  }))
    fs.writeFileSync(join(memory, name), content);
  fs.symlinkSync('a', join(memory, 'b/d'));
}

class Run {
  readonly model = new Model();
  readonly log: string[] = [];
  private readonly random: (below: number) => number;
  private readonly live: Live;
  private readonly top: string;
  private readonly anyOrder: boolean;
  private counter = 0;
  /** Open descriptors, by the file of the model. */
  private readonly held = new Map<number, number>();
  private readonly inodes = new Map<number, number>();

  constructor(live: Live, seed: number, anyOrder: boolean) {
    this.live = live;
    this.random = generator(seed);
    this.anyOrder = anyOrder;
    this.top = join(live.view, 'memory');
    this.load(this.top, '');
  }

  /** What is there at the beginning. */
  private load(directory: string, prefix: string): void {
    for (const name of fs.readdirSync(directory).sort()) {
      const at = join(directory, name);
      const st = fs.lstatSync(at);
      const kind = st.isDirectory() ? 'directory' : st.isSymbolicLink() ? 'symlink' : 'file';
      const content =
        kind === 'file' ? fs.readFileSync(at, 'latin1') : kind === 'symlink' ? fs.readlinkSync(at) : '';
      this.model.link(prefix + name, this.model.make(kind, content, st.mode & 0o7777));
      if (kind === 'directory') this.load(at, `${prefix + name}/`);
    }
  }

  async steps(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const what = this.random(100);
      if (what < 6 && this.model.windows.length < 4) await this.openWindow();
      else if (what < 11 && this.model.windows.length > 0) await this.closeWindow();
      // Without a window everything is real, and the lower is to stay as it is.
      else if (this.model.windows.length > 0) this.operate();
      if (this.random(20) === 0) this.compare();
    }
    while (this.model.windows.length > 0) await this.closeWindow();
    this.compare();
    for (const fd of this.held.values()) fs.closeSync(fd);
  }

  private async openWindow(): Promise<void> {
    const name = `w${++this.counter}`;
    this.log.push(`open ${name}`);
    await this.live.open(name);
    this.model.open(name);
    this.compare();
  }

  private async closeWindow(): Promise<void> {
    const { windows } = this.model;
    const at = this.anyOrder ? this.random(windows.length) : windows.length - 1;
    const { name } = windows[at]!;
    this.log.push(`close ${name}, ${at + 1} of ${windows.length}`);
    await this.live.close(name);
    this.model.close(at);
    this.compare();
  }

  private pick(wanted: (inode: Inode) => boolean): string | undefined {
    const paths = this.model.paths().filter((path) => wanted(this.model.at(path)!));
    return paths[this.random(paths.length || 1)];
  }

  /** A name in some directory, used or not. */
  private name(): string {
    const directory = this.random(3) === 0 ? '' : (this.pick(({ kind }) => kind === 'directory') ?? '');
    const name = NAMES[this.random(NAMES.length)]!;
    return directory === '' ? name : `${directory}/${name}`;
  }

  private operate(): void {
    const { model } = this;
    const file = this.pick(({ kind }) => kind === 'file');
    const path = this.name();
    const real = join(this.top, path);
    const known = model.at(path);
    const word = `${++this.counter} `;
    switch (this.random(11)) {
      case 0:
      case 1:
        if (known) return;
        this.log.push(`create ${path}`);
        fs.writeFileSync(real, word);
        model.link(path, model.make('file', word));
        return;
      case 2:
        if (known) return;
        this.log.push(`mkdir ${path}`);
        fs.mkdirSync(real);
        model.link(path, model.make('directory'));
        return;
      case 3:
        if (known) return;
        this.log.push(`symlink ${path}`);
        fs.symlinkSync(word, real);
        model.link(path, model.make('symlink', word, 0o777));
        return;
      case 4:
      case 5: {
        if (!file) return;
        const inode = model.at(file)!;
        this.log.push(`append ${file}`);
        fs.appendFileSync(join(this.top, file), word);
        inode.content += word;
        model.touch(inode);
        return;
      }
      case 6: {
        if (!file) return;
        const inode = model.at(file)!;
        const length = this.random(inode.content.length + 1);
        this.log.push(`truncate ${file} ${length}`);
        fs.truncateSync(join(this.top, file), length);
        inode.content = inode.content.slice(0, length);
        model.touch(inode);
        return;
      }
      case 7: {
        const any = this.pick(({ kind }) => kind !== 'symlink');
        if (!any) return;
        const inode = model.at(any)!;
        inode.mode = inode.kind === 'directory' ? 0o700 + this.random(64) : 0o600 + this.random(64);
        this.log.push(`chmod ${any} ${inode.mode.toString(8)}`);
        fs.chmodSync(join(this.top, any), inode.mode);
        model.touch(inode);
        return;
      }
      case 8:
        this.remove();
        return;
      case 9:
        this.rename();
        return;
      case 10: {
        if (!file || this.held.size > 20) return;
        const { id } = model.at(file)!;
        if (this.held.has(id)) return;
        this.log.push(`hold ${file}`);
        this.held.set(id, fs.openSync(join(this.top, file), 'r+'));
        return;
      }
    }
  }

  private remove(): void {
    const { model } = this;
    const path = this.pick(({ kind, names }) => kind !== 'directory' || names.size === 0);
    if (!path) return;
    this.log.push(`remove ${path}`);
    if (model.at(path)!.kind === 'directory') fs.rmdirSync(join(this.top, path));
    else fs.unlinkSync(join(this.top, path));
    model.unlink(path);
  }

  private rename(): void {
    const { model } = this;
    const from = this.pick(() => true);
    const to = this.name();
    if (!from || from === to || to.startsWith(`${from}/`) || from.startsWith(`${to}/`)) return;
    const inode = model.at(from)!;
    const target = model.at(to);
    if (target) {
      if ((target.kind === 'directory') !== (inode.kind === 'directory')) return;
      if (target.names.size > 0) return;
    }
    this.log.push(`rename ${from} ${to}`);
    fs.renameSync(join(this.top, from), join(this.top, to));
    model.unlink(from);
    model.link(to, inode);
    this.touchBelow(inode);
  }

  /** Who moves a directory takes all of it along. */
  private touchBelow(inode: Inode): void {
    this.model.touch(inode);
    for (const id of inode.names.values()) this.touchBelow(this.model.get(id));
  }

  compare(): void {
    const wanted = new Map(this.model.paths().map((path) => [path, this.describe(this.model.at(path)!)]));
    const found = new Map<string, string>();
    this.look(this.top, '', found);
    assert.deepEqual([...found].sort(), [...wanted].sort());
    for (const [id, fd] of this.held) this.compareHeld(id, fd);
  }

  /**
   * Who has a file open sees it as it is in the view, if it is in it at all. Where a window further down closed, it may be
   * two files by now, or gone; but at the end it is the lower's, or nothing.
   */
  private compareHeld(id: number, fd: number): void {
    const path = this.model.paths().find((one) => this.model.at(one)!.id === id);
    const inode = path === undefined ? undefined : this.model.at(path)!;
    let content: string | undefined;
    try {
      const st = fs.fstatSync(fd);
      const bytes = Buffer.alloc(st.size);
      fs.readSync(fd, bytes, 0, st.size, 0);
      content = bytes.toString('latin1');
      if (inode && !this.anyOrder) {
        const before = this.inodes.get(id) ?? st.ino;
        assert.equal(st.ino, before, `inode number of ${path}`);
        this.inodes.set(id, st.ino);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).errno !== -ESTALE) throw error;
    }
    if (!inode || (this.anyOrder && (content === undefined || this.model.windows.length > 0))) return;
    assert.equal(content, inode.content, `by its descriptor: ${path}`);
  }

  private describe({ kind, mode, content }: Inode): string {
    return kind === 'directory'
      ? `${kind} ${mode}`
      : kind === 'file'
        ? `${kind} ${mode} ${content}`
        : `${kind} ${content}`;
  }

  private look(directory: string, prefix: string, found: Map<string, string>): void {
    for (const name of fs.readdirSync(directory)) {
      const at = join(directory, name);
      const st = fs.lstatSync(at);
      const mode = st.mode & 0o7777;
      if (st.isDirectory()) {
        found.set(prefix + name, `directory ${mode}`);
        this.look(at, `${prefix + name}/`, found);
      } else if (st.isSymbolicLink()) found.set(prefix + name, `symlink ${fs.readlinkSync(at)}`);
      else found.set(prefix + name, `file ${mode} ${fs.readFileSync(at, 'latin1')}`);
    }
  }
}

for (const anyOrder of [false, true]) {
  onMount(
    `nested windows that close ${anyOrder ? 'in any order' : 'the last first'} show what a model shows`,
    async (live) => {
      const first = Number(process.env.FORGET_WINDOWS_SEED ?? 1);
      for (let seed = first; seed < first + ROUNDS; seed++) {
        const run = new Run(live, seed, anyOrder);
        await run.steps(STEPS).catch((error: Error) => {
          const log = run.log.slice(-800).join('\n');
          throw new Error(`seed ${seed} after\n${log}\n${error.message}`, { cause: error });
        });
      }
      const { upper } = await live.status();
      assert.equal(upper.used, 0, 'the upper holds something after all windows closed');
      assert.deepEqual(protectedDifferences(live.workspace), []);
    },
    { shape: { empty: true, prepare } },
  );
}
