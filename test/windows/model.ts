/**
 * What a mount with nested windows should show, in memory: a tree of files and directories, copied whole when a window
 * opens. To close the one on top is to go back to the copy; to close one further down takes what those above it changed,
 * path by path, over to the copy.
 *
 * Every change of a file gives it a new `version`, and so does every change of the names in a directory: a path is
 * changed where another file, or another version of it, stands.
 */
export type Kind = 'file' | 'directory' | 'symlink';

export interface Inode {
  id: number;
  /** Its id, or of the one that it was split from (a file that is at two places after a close). */
  line: number;
  kind: Kind;
  version: number;
  mode: number;
  content: string;
  xattr: string;
  /** Of a directory: its names. */
  names: Map<string, number>;
}

export interface State {
  inodes: Map<number, Inode>;
}

export const ROOT = 1;

function copy(state: State): State {
  const inodes = new Map<number, Inode>();
  for (const [id, inode] of state.inodes) inodes.set(id, { ...inode, names: new Map(inode.names) });
  return { inodes };
}

export class Model {
  state: State = { inodes: new Map() };
  private next = ROOT;
  private versions = 0;
  /** Names and what was there when each was opened; the outermost first. */
  readonly windows: { name: string; under: State }[] = [];

  constructor() {
    this.make('directory');
  }

  make(kind: Kind, content = '', mode = kind === 'directory' ? 0o755 : 0o644): Inode {
    const id = this.next++;
    const inode: Inode = {
      id,
      line: id,
      kind,
      version: ++this.versions,
      mode,
      content,
      xattr: '',
      names: new Map(),
    };
    this.state.inodes.set(id, inode);
    return inode;
  }

  touch(inode: Inode): void {
    inode.version = ++this.versions;
  }

  get(id: number): Inode {
    return this.state.inodes.get(id)!;
  }

  at(path: string, state = this.state): Inode | undefined {
    let inode = state.inodes.get(ROOT);
    for (const name of path === '' ? [] : path.split('/')) {
      const id = inode?.names.get(name);
      inode = id === undefined ? undefined : state.inodes.get(id);
    }
    return inode;
  }

  /** Every path below the root. */
  paths(state = this.state): string[] {
    const out: string[] = [];
    const walk = (inode: Inode, prefix: string) => {
      for (const [name, id] of inode.names) {
        out.push(prefix + name);
        walk(state.inodes.get(id)!, `${prefix + name}/`);
      }
    };
    walk(state.inodes.get(ROOT)!, '');
    return out;
  }

  link(path: string, inode: Inode): void {
    const [parent, name] = split(path);
    const directory = this.at(parent)!;
    directory.names.set(name, inode.id);
    this.touch(directory);
  }

  unlink(path: string): void {
    const [parent, name] = split(path);
    const directory = this.at(parent)!;
    directory.names.delete(name);
    this.touch(directory);
  }

  open(name: string): void {
    this.windows.push({ name, under: copy(this.state) });
  }

  close(at: number): void {
    const onto = this.windows[at]!.under;
    const above = this.windows.slice(at + 1);
    this.windows.splice(at, 1);
    if (above.length === 0) {
      this.state = onto;
      return;
    }
    const base = above[0]!.under;
    above[0]!.under = onto;
    for (const one of above.slice(1)) one.under = this.rebased(one.under, base, onto);
    this.state = this.rebased(this.state, base, onto);
  }

  private rebased(state: State, base: State, onto: State): State {
    const paths = [...new Set([...this.paths(state), ...this.paths(base), ...this.paths(onto)])];
    paths.sort((a, b) => a.split('/').length - b.split('/').length || (a < b ? -1 : 1));
    const kept = new Set(paths.filter((path) => !isSame(this.at(path, state), this.at(path, base))));
    for (const path of [...kept]) {
      if (!this.at(path, state)) continue;
      for (let [parent] = split(path); parent !== ''; [parent] = split(parent)) {
        if (this.at(parent, onto)?.kind !== 'directory') kept.add(parent);
      }
    }
    const out: State = { inodes: new Map() };
    const root = this.at('', isSame(this.at('', state), this.at('', base)) ? onto : state)!;
    out.inodes.set(ROOT, { ...root, names: new Map() });
    const movers = new Map<number, number>();
    for (const path of kept) {
      const inode = this.at(path, state);
      if (inode) movers.set(inode.id, inode.version);
    }
    for (const path of paths) {
      const [parentPath, name] = split(path);
      const parent = this.at(parentPath, out);
      const source = kept.has(path) ? state : onto;
      const inode = this.at(path, source);
      if (!inode || parent?.kind !== 'directory') continue;
      // Another directory stands there now, or it was moved there: what the old one held is not in it.
      if (!kept.has(path) && this.at(parentPath, onto)?.line !== parent.line) continue;
      if (!kept.has(path) && kept.has(parentPath) && this.at(parentPath, base)?.line !== parent.line)
        continue;
      let { id } = inode;
      // A file that is at two places now: it stays itself where it was changed last.
      if ((movers.get(id) ?? inode.version) !== inode.version) id = this.next++;
      out.inodes.set(id, { ...inode, id, names: new Map() });
      parent.names.set(name, id);
    }
    return out;
  }
}

function isSame(a: Inode | undefined, b: Inode | undefined): boolean {
  return a?.line === b?.line && a?.version === b?.version;
}

export function split(path: string): [string, string] {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? ['', path] : [path.slice(0, slash), path.slice(slash + 1)];
}
